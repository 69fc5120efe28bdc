// When each tenant's ledger is read: who may charge a ledger can make reading it take long, and must not delay the
// figures of others by that.
//
// A look that took long is repeated only after `rest` times as long, at most `longest_rest`. What counts is the time on a
// CPU: on a busy node a look may be interrupted for long, which is nobody's fault. Those that are due are
// looked at in the order of a call: first the cheap ones and those that have waited too long, then the others; among
// these, those that have waited longest. A call ends when its time is over, and the next one comes to what was left.
//
// One thread. No system calls but the clocks'.
#pragma once

#include <algorithm>
#include <chrono>
#include <ctime>
#include <functional>
#include <tuple>
#include <utility>
#include <vector>

namespace rdmaquota {

class LookSchedule {
public:
    using Clock = std::chrono::steady_clock;
    using Now = std::function<Clock::time_point()>;
    static constexpr int rest = 20, short_rest = 3;
    static constexpr std::chrono::seconds longest_rest{20};
    static constexpr std::chrono::milliseconds cheap{1};

    // On a CPU, by this thread, since some time.
    static Clock::time_point thread_time() noexcept {
        timespec used{};
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
        return Clock::time_point(std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec));
    }

    // Of one tenant.
    struct Turn {
        Clock::duration took{};   // the last look, and what was made of it since
        Clock::time_point due{};  // not before
    };

    explicit LookSchedule(Now now = Clock::now, Now used = thread_time)
        : now_(std::move(now)), used_(std::move(used)) {}

    Clock::time_point now() const { return now_(); }
    bool is_due(const Turn& turn) const { return now_() >= turn.due; }

    // Does `work`, which is a look at the one whose turn it is.
    template <class Work>
    void take(Turn& turn, Work work) const {
        turn.took = {};
        add(turn, work);
    }

    // Does `work` that others wait for, such as uncharging what a dead process held: it comes again sooner than a look.
    template <class Work>
    void hasten(Turn& turn, Work work) const {
        const auto begin = now_();
        work();
        const auto end = now_();
        turn.due = end + std::min<Clock::duration>(short_rest * (end - begin), longest_rest);
    }

    // Does `work` that comes from the last look, such as writing its figures: the next look is later by it.
    template <class Work>
    void add(Turn& turn, Work work) const {
        const auto begin = used_();
        work();
        turn.took += used_() - begin;
        turn.due = now_() + std::min<Clock::duration>(rest * turn.took, longest_rest);
    }

    // Looks at those of `all` that are due, until `budget` is over. True when it came to all of them.
    template <class Item, class Look>
    bool pass(const std::vector<Item*>& all, Clock::duration budget, Look look) const {
        const auto begin = now_();
        std::vector<Item*> due;
        for (auto* item : all)
            if (begin >= item->turn.due) due.push_back(item);
        std::stable_sort(due.begin(), due.end(),
                         [&](const Item* a, const Item* b) { return order(a->turn, begin) < order(b->turn, begin); });
        for (auto* item : due) {
            if (now_() - begin >= budget) return false;
            take(item->turn, [&] { look(*item); });
        }
        return true;
    }

private:
    static std::tuple<bool, Clock::time_point> order(const Turn& turn, Clock::time_point now) {
        const bool last = turn.took > cheap && now - turn.due < longest_rest;
        return {last, turn.due};
    }

    Now now_, used_;
};

}  // namespace rdmaquota
