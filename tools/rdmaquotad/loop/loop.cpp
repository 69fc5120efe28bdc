#include "tools/rdmaquotad/loop/loop.hpp"

#include <algorithm>
#include <csignal>
#include <ctime>
#include <system_error>

#include <fmt/core.h>
#include <systemd/sd-daemon.h>

#include "tools/rdmaquotad/loop/log.hpp"

namespace rdmaquota {

struct Loop::Body : std::enable_shared_from_this<Loop::Body> {
    sd_event_source* source = nullptr;
    std::function<void(std::uint32_t)> call;
    std::uint64_t interval_us = 0;

    ~Body() {
        if (source != nullptr) sd_event_source_disable_unref(source);
    }
};

namespace {

bool runs = false;  // from when on systemd's watchdog waits

void let_watchdog_wait(std::uint64_t us) { ::sd_notify(0, fmt::format("WATCHDOG_USEC={}", us).c_str()); }

int check(int result, const char* what) {
    if (result < 0) throw std::system_error(-result, std::generic_category(), what);
    return result;
}

// The copy keeps the callback alive while it runs, even when it destroys its own source. An exception
// must not pass through sd-event, which is C; whatever it was, the daemon ends and is started again.
int call(sd_event_source* source, std::uint32_t events, void* data) noexcept {
    const auto body = static_cast<Loop::Body*>(data)->shared_from_this();
    try {
        body->call(events);
    } catch (const std::exception& error) {
        log(Priority::error, error.what());
        sd_event_exit(sd_event_source_get_event(source), 1);
    }
    return 0;
}

int ready(sd_event_source* source, int, std::uint32_t events, void* data) { return call(source, events, data); }

std::uint64_t now_us() noexcept {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000;
}

// From when it was due, so that a tick each second misses no second; but not before it has rested for twice the time that it
// took, so that what users make long leaves time for all others. Its callback may destroy it, and then it stays silent.
int due(sd_event_source* source, std::uint64_t planned_us, void* data) {
    const auto body = static_cast<Loop::Body*>(data)->shared_from_this();
    sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
    const auto begin_us = now_us();
    const int result = call(source, 0, data);
    const auto end_us = now_us();
    // A machine that stood still owes no ticks.
    const auto next_us = std::max(planned_us + body->interval_us, begin_us > planned_us + body->interval_us ? begin_us + body->interval_us : 0);
    sd_event_source_set_time(source, std::max(next_us, end_us + 2 * (end_us - begin_us)));
    return result;
}

int caught(sd_event_source* source, const signalfd_siginfo*, void* data) { return call(source, 0, data); }

}  // namespace

// The old one is silent at once, also while its callback runs: its descriptor may be closed next, and sd-event must
// have let go of it by then, since a child that was forked meanwhile keeps it in the kernel's list.
Loop::Source& Loop::Source::operator=(Source&& other) noexcept {
    const Source old(std::move(*this));
    body_ = std::move(other.body_);
    return *this;
}

Loop::Source::~Source() {
    // Silent from now on, even if its callback is just running and keeps the body.
    if (body_ != nullptr) sd_event_source_set_enabled(body_->source, SD_EVENT_OFF);
}

void Loop::Source::set_events(std::uint32_t events) { sd_event_source_set_io_events(body_->source, events); }

Loop::Loop() { check(sd_event_new(&event_), "cannot make an event loop"); }

Loop::~Loop() { sd_event_unref(event_); }

Loop::Source Loop::watch(int fd, std::uint32_t events, std::function<void(std::uint32_t)> call, Urgency urgency) {
    Source source;
    source.body_ = std::make_shared<Body>();
    source.body_->call = std::move(call);
    check(sd_event_add_io(event_, &source.body_->source, fd, events, ready, source.body_.get()), "cannot watch");
    sd_event_source_set_priority(source.body_->source, static_cast<int>(urgency));
    return source;
}

Loop::Source Loop::every(std::chrono::milliseconds interval, std::function<void()> call, Urgency urgency) {
    Source source;
    source.body_ = std::make_shared<Body>();
    source.body_->call = [call = std::move(call)](std::uint32_t) { call(); };
    source.body_->interval_us = static_cast<std::uint64_t>(interval.count()) * 1000;
    check(sd_event_add_time_relative(event_, &source.body_->source, CLOCK_MONOTONIC, source.body_->interval_us, 1000,
                                     due, source.body_.get()),
          "cannot make a timer");
    sd_event_source_set_priority(source.body_->source, static_cast<int>(urgency));
    return source;
}

Loop::Source Loop::on_signal(int number, std::function<void()> call) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, number);
    ::sigprocmask(SIG_BLOCK, &signals, nullptr);
    Source source;
    source.body_ = std::make_shared<Body>();
    source.body_->call = [call = std::move(call)](std::uint32_t) { call(); };
    check(sd_event_add_signal(event_, &source.body_->source, number, caught, source.body_.get()),
          "cannot wait for a signal");
    return source;
}

// systemd's watchdog waits from the first sign of life on, which comes here: loading the program in the kernel before
// may take longer than it waits.
int Loop::run() {
    check(sd_event_set_watchdog(event_, 1), "cannot serve the watchdog");
    runs = true;
    return check(sd_event_loop(event_), "the event loop failed");
}

void Loop::stop(int status) { sd_event_exit(event_, status); }

LongStep::LongStep() {
    if (runs && ::sd_watchdog_enabled(0, &usual_us_) > 0) let_watchdog_wait(std::uint64_t{600} * 1000 * 1000);
}

LongStep::~LongStep() {
    if (usual_us_ != 0) let_watchdog_wait(usual_us_);
}

}  // namespace rdmaquota
