// The phases of the oracle. Each checks that the three accounts agree: at every step of the first two, and
// at the moments when all threads or processes rest in the others.
#pragma once

#include <string>

#include <infiniband/verbs.h>

#include "accounting.hpp"
#include "player.hpp"

namespace oracle {

struct Stage {
    std::string device;
    bool with_kernel;
    std::uint64_t seed;
    unsigned steps;
    unsigned new_sidecar;  // see Accounting
    bool guard = false;
};

// Prints "ok - NAME" or "not ok - NAME" with what was seen; what is seen is empty when it is good.
void report(const std::string& name, const std::string& wrong, const std::string& story = {});
int finish();  // prints the counts; the exit status

ibv_device* find_device(const std::string& name);  // exits when it is not there

void single(const Stage& stage, Accounting& accounting, bool with_limits);
void threads(const Stage& stage, Accounting& accounting);
void processes(const Stage& stage, Accounting& accounting);
void resizers(const Stage& stage, Accounting& accounting);
void unplug(const Stage& stage, Accounting& accounting);

}  // namespace oracle
