// The daemon's one loop: descriptors, timers and signals, served one at a time by one thread. A thin
// layer over sd-event(3), which also tells systemd's watchdog that the loop still turns.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include <systemd/sd-event.h>

namespace rdmaquota {

// What is served first when several things are ready.
enum class Urgency { first = -1, usual = 0, last = 1 };

class Loop {
public:
    struct Body;

    // Something that is waited for, until this is destroyed, which a callback may do to its own.
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

    // All throw std::system_error when the kernel is out of memory or descriptors.
    Loop();
    Loop(const Loop&) = delete;
    ~Loop();

    // The descriptor stays the caller's, who closes it after the source.
    Source watch(int fd, std::uint32_t events, std::function<void(std::uint32_t)> ready, Urgency = Urgency::usual);
    Source every(std::chrono::milliseconds interval, std::function<void()> due, Urgency = Urgency::usual);
    Source on_signal(int number, std::function<void()> caught);  // blocks the signal

    int run();              // until `stop`; returns its status
    void stop(int status);

private:
    sd_event* event_ = nullptr;
};

}  // namespace rdmaquota
