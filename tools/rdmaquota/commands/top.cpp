// rdmaquota top: who uses what, live. Reads the ledgers, so that it needs no sidecar; where one runs, the title also
// counts the processes that go around the quota.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <memory>
#include <utility>

#include <fmt/core.h>

#include "tools/common/views/findings.hpp"
#include "tools/common/views/json.hpp"
#include "tools/rdmaquota/command.hpp"
#include "tools/common/events/event_text.hpp"
#include "tools/common/guard/guard_counts.hpp"
#include "tools/rdmaquota/view/screen.hpp"
#include "tools/rdmaquota/view/summary.hpp"
#include "tools/common/tenants/read_tenants.hpp"
#include "tools/rdmaquota/view/top_view.hpp"

namespace rdmaquota {
namespace {

struct Options {
    double delay_s = 1;
    std::string by = "tenant", filter;
    bool batch = false;
    int frames = 0;  // 0: until interrupted
    std::vector<std::string> devices, resources;
};

constexpr std::string_view keys = "q quit  ? help  / filter  t tenant  u user  p process  d device  < > sort  r turn";
constexpr std::array<std::string_view, 4> views{"tenant", "device", "process", "user"};

class Top {
public:
    Top(const Session& session, TopView view, const Options& options, Narrowing to)
        : directory_(session.directory), view_(view), to_(std::move(to)) {
        state_.sort = first_sort(view);
        state_.filter = options.filter;
    }

    Result<void> run(int delay_ms) {
        if (const auto done = read(); !done) return done;
        Screen screen;
        const auto terminal = standard_output();
        for (;;) {
            if (const auto done = read(); !done) return done;
            screen.draw(helps_ ? top_help() : frame(screen, terminal));
            std::string typed;
            const auto key = screen.wait(delay_ms, typed);
            if (key == Key::quit || (!types_ && !helps_ && typed == "q")) return {};
            if (key == Key::other && types_) type(typed);
            else press(key, typed.empty() ? '\0' : typed.front());
        }
    }

    // Frames for a file or a pipe, with an empty line between two: all rows, whatever their width.
    Result<void> print(int delay_ms, int frames) {
        Terminal anywhere;
        for (int frame = 0; frames == 0 || frame < frames; ++frame) {
            if (frame != 0) ::poll(nullptr, 0, delay_ms);
            if (const auto done = read(); !done) return done;
            auto table = rows();
            fmt::print("{}{}\n", frame == 0 ? "" : "\n", title());
            const auto height = table.rows.size() + 1;
            for (const auto& line : lay_out(table, state_, std::string::npos, height, anywhere)) fmt::print("{}\n", line);
            if (std::fflush(stdout) != 0) return Error{"cannot write the output"};
        }
        return {};
    }

private:
    // Done for each frame: tenants come and go, and opening their files costs microseconds.
    Result<void> read() {
        auto tenants = read_tenants(directory_);
        if (!tenants) return Error{tenants.error()};
        tenants_ = std::move(*tenants);
        const auto guard = guard_counts(directory_);
        for (auto& tenant : tenants_) add_guard_counts(guard, tenant.view);
        guarded_ = guard.value("state", "off") == "deny";
        return {};
    }

    TopTable rows() {
        auto narrowed = tenants_;
        narrow(narrowed, to_);
        std::vector<TenantView> views;
        for (auto& tenant : narrowed) views.push_back(std::move(tenant.view));
        return top_table(views, view_);
    }

    std::string last_line() const {
        if (types_) return fmt::format("/{}_  (Enter keeps it, Esc shows all)", printable(state_.filter));
        return state_.filter.empty() ? std::string(keys) : fmt::format("/{}  {}", printable(state_.filter), keys);
    }

    std::vector<std::string> frame(const Screen& screen, const Terminal& terminal) {
        auto table = rows();
        auto lines = title_lines(title(), screen.width());
        const auto room = screen.height() > 4 ? screen.height() - 3 : 1;
        for (auto& line : lay_out(table, state_, screen.width(), room, terminal)) lines.push_back(std::move(line));
        while (lines.size() + 1 < screen.height()) lines.emplace_back();
        lines.push_back(coloured(terminal, Colour::dim, shortened(terminal, last_line(), screen.width())));
        return lines;
    }

    // The mode that all tenants have.
    std::string_view mode() const {
        const auto first = tenants_.front().view.mode;
        const bool same = std::all_of(tenants_.begin(), tenants_.end(),
                                      [first](const TenantReading& tenant) { return tenant.view.mode == first; });
        return same ? name(first) : "differs";
    }

    std::string title() const {
        std::size_t processes = 0, changed = 0;
        for (const auto& tenant : tenants_) {
            processes += tenant.view.processes.size();
            changed += count_changed(tenant.held);
        }
        timespec now{};
        ::clock_gettime(CLOCK_REALTIME, &now);
        const auto time = event_time(static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000, true).substr(11, 8);
        auto text = fmt::format("{}  by {}  mode {}  {} process{}", time, views[static_cast<std::size_t>(view_)],
                                mode(), processes, processes == 1 ? "" : "es");
        const auto around = findings(directory_).bypasses.size();
        if (around != 0) text += fmt::format("  {} {}", around, guarded_ ? "held by the guard alone" : "around the quota");
        if (changed != 0) text += fmt::format("  {} limits not as configured", changed);
        if (around + changed != 0) text += "  (see rdmaquota show)";
        return text;
    }

    // A part of the filter.
    void type(const std::string& typed) {
        constexpr char escape = '\x1b', erase = '\x7f', back = '\b';
        for (const char character : typed) {
            if (character == '\r' || character == '\n' || character == escape) types_ = false;
            if (character == escape) state_.filter.clear();
            if (!types_) return;
            const bool erases = character == erase || character == back;
            if (erases && !state_.filter.empty()) state_.filter.pop_back();
            if (!erases && static_cast<unsigned char>(character) >= ' ') state_.filter += character;
        }
    }

    void press(Key key, char character) {
        if (key != Key::none && std::exchange(helps_, false)) return;
        if (character == '?') helps_ = true;
        if (character == '/') types_ = true;
        if (character == '\x1b') state_.filter.clear();
        if (key == Key::up && state_.offset > 0) --state_.offset;
        if (key == Key::down) ++state_.offset;
        if ((key == Key::left || character == '<') && state_.sort > 0) --state_.sort;
        if (key == Key::right || character == '>') ++state_.sort;
        if (character == 'r') state_.reverse = !state_.reverse;
        if (character == 't') turn(TopView::tenant);
        if (character == 'd') turn(TopView::device);
        if (character == 'p') turn(TopView::process);
        if (character == 'u') turn(TopView::user);
    }

    void turn(TopView view) {
        view_ = view;
        state_ = {first_sort(view), false, 0, state_.filter};
    }

    std::string directory_;
    TopView view_;
    Narrowing to_;
    TopState state_;
    bool types_ = false, helps_ = false, guarded_ = false;
    std::vector<TenantReading> tenants_;
};

int top(const Options& options, const Session& session) {
    const auto view = std::find(views.begin(), views.end(), options.by);
    if (view == views.end())
        return wrong_usage(fmt::format("'{}' is no view; write tenant, user, process or device", options.by));
    if (!(options.delay_s >= 0.1 && options.delay_s <= 3600)) return wrong_usage("the delay is 0.1 to 3600 seconds");
    if (options.frames != 0 && !options.batch) return wrong_usage("--count is for --batch");
    auto to = narrowing(options.devices, options.resources);
    if (!to) return wrong_usage(to.error());
    if (!options.batch && (::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1))
        return failed("top needs a terminal; 'rdmaquota top --batch' and 'rdmaquota show' write to files and pipes");
    Top top(session, static_cast<TopView>(view - views.begin()), options, std::move(*to));
    const auto delay_ms = static_cast<int>(options.delay_s * 1000);
    const auto done = options.batch ? top.print(delay_ms, options.frames) : top.run(delay_ms);
    return done ? status_done : failed(done.error());
}

}  // namespace

void add_top(CommandLine& line, const Session& session) {
    const auto options = std::make_shared<Options>();
    auto command = line.command("top", "Watch usage live, by tenant, user, process or device");
    command.option("--by", "VIEW", options->by, "What a line is at first: tenant, user, process or device");
    command.option("-d,--delay", "SECONDS", options->delay_s, "Seconds between looks; 1 by default");
    command.option("--filter", "TEXT", options->filter, "At first only lines with a word that contains this");
    command.list("--device", "DEVICE", options->devices, "Only of this device");
    command.list("--resource", "RESOURCE", options->resources, "Only of this resource");
    command.flag("--batch", options->batch, "Print to a file or a pipe, until interrupted");
    command.positive("-n,--count", "N", options->frames, "With --batch: N times only");
    command.action([options, &session] { return top(*options, session); });
}

}  // namespace rdmaquota
