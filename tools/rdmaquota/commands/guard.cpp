// rdmaquota guard: what the guard in the kernel counts and has refused; takes it out.
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "tools/common/control_client.hpp"
#include "tools/common/guard/guard_counts.hpp"
#include "tools/common/guard/guard_pins.hpp"
#include "tools/common/views/json.hpp"
#include "tools/common/views/snapshot.hpp"
#include "tools/common/text/terminal.hpp"
#include "tools/rdmaquota/command.hpp"
#include "tools/rdmaquota/view/summary.hpp"

namespace rdmaquota {
namespace {

constexpr const char* how_to_begin = "write guard = \"deny\" below [sidecar] in the policy file, put it in force "
                                     "with 'rdmaquota reload', and have rdmaquotad run";

struct Options {
    std::string what;
    bool json = false;
    std::vector<std::string> devices, resources;
    int top = 0;
};

struct Cell {
    std::string tenant, device;
    Resource resource;
    const Json* figures;

    std::uint64_t number(const char* name, std::uint64_t otherwise = 0) const { return number_member(*figures, name, otherwise); }
    std::uint64_t limit() const { return number("limit", unlimited); }
    double share() const { return share_of_limit(number("used"), limit()); }
};

std::vector<Cell> cells_of(const Json& guard, const Options& options) {
    std::vector<Cell> cells;
    for (const auto& tenant : guard["tenants"])
        for (const auto& [device, figures] : tenant["devices"].items())
            for (const auto& [word, cell] : figures.items()) {
                const auto resource = find_limit(word);
                if (resource && is_asked(options.devices, device) && is_asked(options.resources, word))
                    cells.push_back({tenant.value("name", ""), device, *resource, &cell});
            }
    if (options.top == 0) return cells;
    std::stable_sort(cells.begin(), cells.end(), [](const Cell& one, const Cell& other) { return one.share() > other.share(); });
    if (cells.size() > static_cast<std::size_t>(options.top)) cells.erase(cells.begin() + options.top, cells.end());
    return cells;
}

void print_tenants(const Json& guard, const Options& options) {
    Table table({"TENANT", "DEVICE", "RESOURCE", "KERNEL", "LIMIT", guard.value("state", "off") == "watch" ? "WOULD REFUSE" : "REFUSED"},
                {Align::left, Align::left, Align::left, Align::right, Align::right, Align::right});
    auto cells = cells_of(guard, options);
    const auto idle = options.top != 0 ? 0 : std::erase_if(cells, [](const Cell& cell) { return cell.number("used") == 0 && cell.number("refused") == 0; });
    for (const auto& cell : cells)
        table.add({printable(cell.tenant), printable(cell.device), std::string(info(cell.resource).name),
                   is_rate(cell.resource) ? "-" : format_amount(cell.resource, cell.number("used")), format_amount(cell.resource, cell.limit()),
                   std::to_string(cell.number("refused"))});
    if (!cells.empty()) table.print(standard_output());
    if (idle != 0) fmt::print("of {} other limit{} nothing is used; --json lists all\n", idle, idle == 1 ? "" : "s");
}

std::string unanswered(const std::string& directory, const std::string& error) {
    if (!sidecar_listens(directory))
        return GuardPins::visible() ? fmt::format("the guard is off: {}", error)
                                    : fmt::format("only root sees whether the kernel keeps the guard: {}", error);
    return fmt::format("it is not known whether the guard is on: {}; while it starts, ask again", error);
}

int show(const Options& options, const Session& session) {
    const auto answer = ask_sidecar(session.directory, Json{{"request", "guard"}});
    const bool kept = !GuardPins::all().empty();
    if (!answer && !kept) return failed(unanswered(session.directory, answer.error()));
    const auto guard = answer ? (*answer)["guard"] : Json{{"state", "kept"}, {"tenants", Json::array()}};
    if (options.json) {
        fmt::print("{}\n", dump(guard));
        return status_done;
    }
    if (!answer) {
        fmt::print("the guard is {}: {}\n", guard_words("kept"), answer.error());
        return status_done;
    }
    const auto state = guard.value("state", "off");
    fmt::print("the guard is {}{}\n", guard_words(state), state == "off" ? fmt::format("; to begin, {}", how_to_begin) : "");
    for (const auto& problem : guard.value("problems", Json::array()))
        fmt::print("{}\n", printable(problem.get<std::string>()));
    print_tenants(guard, options);
    return status_done;
}

// A sidecar that is stopped holds programs that are off now, and lets go of them when it goes on. What was never pinned
// is out of reach.
int take_out(const Session& session) {
    const bool kept = !GuardPins::all().empty();
    const auto answer = ask_sidecar(session.directory, Json{{"request", "guard_off"}}, std::chrono::seconds(kept ? 3 : 10));
    if (const auto removed = GuardPins::remove_all(); !removed) return failed(removed.error());
    if (!answer && !kept)
        return failed(sidecar_listens(session.directory)
                          ? "rdmaquotad does not answer, and may have a guard that the kernel does not keep; end rdmaquotad"
                          : fmt::format("there is no guard to take out: {}", answer.error()));
    fmt::print("the guard is out of the kernel{}\n",
               answer ? ", until the policy is put in force again or rdmaquotad starts again" : "");
    return status_done;
}

int run(const Options& options, const Session& session) {
    if (options.what.empty()) return show(options, session);
    if (options.what != "off") return wrong_usage("write 'guard' or 'guard off'; guard = in the policy file turns it on");
    if (::geteuid() != 0) return failed("only root can take the guard out");
    return take_out(session);
}

}  // namespace

void add_guard(CommandLine& line, const Session& session) {
    const auto options = std::make_shared<Options>();
    auto command = line.command("guard", "Show what the guard in the kernel counts and refused, or take it out");
    command.optional_word("off", options->what, "Take it out of the kernel at once");
    command.flag("--json", options->json, "As JSON");
    command.list("--device", "DEVICE", options->devices, "Only of this device");
    command.list("--resource", "RESOURCE", options->resources, "Only of this resource");
    command.positive("--top", "N", options->top, "The N that are fullest only");
    command.action([options, &session] { return run(*options, session); });
}

}  // namespace rdmaquota
