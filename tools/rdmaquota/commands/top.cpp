// rdmaquota top: who uses what, live. Reads the ledgers, so that it needs no sidecar; where one runs, the title also
// counts the processes that go around the quota.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <memory>

#include <fmt/core.h>

#include "tools/common/findings.hpp"
#include "tools/common/json.hpp"
#include "tools/rdmaquota/command.hpp"
#include "tools/common/event_text.hpp"
#include "tools/rdmaquota/view/screen.hpp"
#include "tools/common/read_tenants.hpp"
#include "tools/rdmaquota/view/top_view.hpp"

namespace rdmaquota {
namespace {

struct Options {
    double delay_s = 1;
    std::string by = "tenant";
};

constexpr std::string_view keys = "q quit  t tenant  u user  p process  d device  < > sort  r reverse  up down";
constexpr std::array<std::string_view, 4> views{"tenant", "device", "process", "user"};

class Top {
public:
    Top(const Session& session, TopView view) : directory_(session.directory), view_(view) {
        state_.sort = first_sort(view);
    }

    Result<void> run(int delay_ms) {
        if (const auto done = read(); !done) return done;
        Screen screen;
        const auto terminal = standard_output();
        for (;;) {
            if (const auto done = read(); !done) return done;
            screen.draw(frame(screen, terminal));
            char character = 0;
            const auto key = screen.wait(delay_ms, character);
            if (key == Key::quit) return {};
            press(key, character);
        }
    }

private:
    // Done for each frame: tenants come and go, and opening their files costs microseconds.
    Result<void> read() {
        auto tenants = read_tenants(directory_);
        if (!tenants) return Error{tenants.error()};
        tenants_ = std::move(*tenants);
        return {};
    }

    std::vector<std::string> frame(const Screen& screen, const Terminal& terminal) {
        std::vector<TenantView> views;
        for (const auto& tenant : tenants_) views.push_back(tenant.view);
        auto table = top_table(views, view_);
        auto lines = title_lines(title(), screen.width());
        const auto room = screen.height() > 4 ? screen.height() - 3 : 1;
        for (auto& line : lay_out(table, state_, screen.width(), room, terminal)) lines.push_back(std::move(line));
        while (lines.size() + 1 < screen.height()) lines.emplace_back();
        lines.push_back(coloured(terminal, Colour::dim, keys.substr(0, screen.width())));
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
        if (around != 0) text += fmt::format("  {} around the quota", around);
        if (changed != 0) text += fmt::format("  {} limits not as configured", changed);
        if (around + changed != 0) text += "  (see rdmaquota show)";
        return text;
    }

    void press(Key key, char character) {
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
        state_ = {first_sort(view), false, 0};
    }

    std::string directory_;
    TopView view_;
    TopState state_;
    std::vector<TenantReading> tenants_;
};

int top(const Options& options, const Session& session) {
    const auto view = std::find(views.begin(), views.end(), options.by);
    if (view == views.end())
        return wrong_usage(fmt::format("'{}' is no view; write tenant, user, process or device", options.by));
    if (!(options.delay_s >= 0.1 && options.delay_s <= 3600)) return wrong_usage("the delay is 0.1 to 3600 seconds");
    if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1)
        return failed("top needs a terminal; 'rdmaquota show' writes to files and pipes");
    const auto done =
        Top(session, static_cast<TopView>(view - views.begin())).run(static_cast<int>(options.delay_s * 1000));
    return done ? status_done : failed(done.error());
}

}  // namespace

void add_top(CommandLine& line, const Session& session) {
    const auto options = std::make_shared<Options>();
    auto command = line.command("top", "Watch usage live, by tenant, user, process or device");
    command.option("--by", "VIEW", options->by, "What a line is at first: tenant, user, process or device");
    command.option("-d,--delay", "SECONDS", options->delay_s, "Seconds between looks; 1 by default");
    command.action([options, &session] { return top(*options, session); });
}

}  // namespace rdmaquota
