// Whoever holds what many wait for runs before them. When fifty jobs begin at once, the fifty that wait, and all that their
// jobs start, would otherwise have the processors, and the one that they wait for hardly any.
#pragma once

namespace rdmaquota {

// While it lives, this thread runs before all that do not ask for real time (SCHED_RR, sched(7)); what it starts does not. Takes
// CAP_SYS_NICE or a limit RLIMIT_RTPRIO; without these nothing changes. After a second of processor time without a wait it
// runs as others do again: what it looks at may be what a tenant has made large. For programs with one thread.
class RunFirst {
public:
    RunFirst() noexcept;
    RunFirst(RunFirst&& other) noexcept;
    RunFirst(const RunFirst&) = delete;
    RunFirst& operator=(const RunFirst&) = delete;
    ~RunFirst();

private:
    bool raised_;
};

}  // namespace rdmaquota
