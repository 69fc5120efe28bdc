// The daemon's event loop: one thread serves descriptors, timers and signals, one at a time. A thin layer over
// sd-event(3), which also tells systemd's watchdog that the loop is alive.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include <systemd/sd-event.h>

namespace rdmaquota {

// The order in which sources are served when several are ready.
enum class Urgency { first = -1, usual = 0, last = 1 };

class Loop {
public:
    struct Body;

    // The loop waits for it until it is destroyed. A callback may destroy its own source.
    class Source {
    public:
        Source() = default;
        Source(Source&&) noexcept = default;
        Source& operator=(Source&& other) noexcept;
        ~Source();
        void set_events(std::uint32_t events);  // of a descriptor: EPOLLIN, EPOLLOUT, ...
        explicit operator bool() const noexcept { return body_ != nullptr; }

    private:
        friend class Loop;
        std::shared_ptr<Body> body_;
    };

    // These throw std::system_error when the kernel is out of memory or descriptors.
    Loop();
    Loop(const Loop&) = delete;
    ~Loop();

    // The caller owns the descriptor and closes it after destroying the source.
    Source watch(int fd, std::uint32_t events, std::function<void(std::uint32_t)> ready, Urgency = Urgency::usual);
    Source every(std::chrono::milliseconds interval, std::function<void()> due, Urgency = Urgency::usual);
    Source on_signal(int number, std::function<void()> caught);  // blocks the signal

    int run();              // until `stop`; returns its status
    void stop(int status);

private:
    sd_event* event_ = nullptr;
};

// While there is one, systemd's watchdog waits for ten minutes instead of WatchdogSec: for a step within the loop that takes
// as long as the kernel does, which checks the guard's program in a second or two, and in minutes on an emulated machine.
class LongStep {
public:
    LongStep();
    LongStep(const LongStep&) = delete;
    LongStep& operator=(const LongStep&) = delete;
    ~LongStep();

private:
    std::uint64_t usual_us_ = 0;  // 0: nobody watches
};

}  // namespace rdmaquota
