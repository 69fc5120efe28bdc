// One thread that makes, changes and destroys verbs objects at random and keeps its own account.
#pragma once

#include <deque>
#include <map>
#include <string>

#include "accounting.hpp"
#include "pool.hpp"

namespace oracle {

// How the calls of one kind ended.
struct Outcomes {
    unsigned done = 0;     // made, changed or destroyed
    unsigned denied = 0;   // with EDQUOT
    unsigned refused = 0;  // with another error
    void add(const Outcomes& other) { done += other.done, denied += other.denied, refused += other.refused; }
};

class Player {
public:
    // `alone`: no other thread or process charges, so that a denial can be judged.
    Player(Pool& pool, const Accounting& accounting, ibv_device* device, std::uint64_t seed, bool alone)
        : pool_(pool), accounting_(accounting), device_(device), random_(seed), alone_(alone) {}

    void step();
    void close_all();  // every context, with what is alive in it but queues
    // From now on no device is closed with queues alive, which would keep it open while this process lives.
    void destroy_queues_first() { queues_first_ = true; }

    Random& random() { return random_; }
    std::string wrong() const { return wrong_; }  // what a call should not have returned; empty when none did
    std::string story() const;                    // the last calls, one per line
    const std::map<std::string, Outcomes>& outcomes() const { return outcomes_; }

private:
    void make();
    void end();
    void close_context(bool clean);
    void resize_cq();
    void modify_srq();
    void rereg_mr();
    bool judge(const std::string& name, const std::string& text, const Tally& more, int error, bool done);
    void change(const Pin& pin, const std::string& name, const std::string& text, Resource resource,
                std::int64_t amount, int status, int error);
    void fault(const std::string& text);

    Pool& pool_;
    const Accounting& accounting_;
    ibv_device* device_;
    Random random_;
    bool alone_, queues_first_ = false;
    std::string wrong_;
    std::deque<std::string> story_;
    std::map<std::string, Outcomes> outcomes_;
};

}  // namespace oracle
