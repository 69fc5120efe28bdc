// Corrects rows by what the files hold that count in them. The two differ for a moment while something is made; a difference
// that stays, while neither changes, is what a call has left that the kernel did not run the program for, or what was made
// while a file was settled; likewise a process's row that no file counts in, and none has entered, is freed. One thread.
//
// The files are read one after the other, so a program that destroys by one and makes by another could be missed, or met twice,
// at every pass. Therefore nothing of the row's files may have been subtracted from the first pass to the last: then figures only
// grow, and one that is the same at both has been so in between, all of them at once.
#pragma once

#include <cstddef>
#include <map>
#include <utility>

#include "tools/common/guard/kernel_counts.h"

namespace rdmaquota {

class GuardAudit {
public:
    // Compares once: [guard_rows] and [opener_slots]. Returns how many figures were corrected and rows freed.
    std::size_t pass(guard_row* rows, const guard_file* files);

private:
    using Place = std::pair<u32, u32>;  // row, place in it; `guard_resources`: the row itself
    struct Seen {
        u64 used, held;
        u64 mark;  // of the files
        bool operator==(const Seen&) const = default;
    };
    struct Doubt {
        Seen seen;
        int times;
    };
    bool stays(Place place, const Seen& seen);
    bool compare(u32 number, u32 resource, u64& used, u64 held, u64 mark);
    std::map<Place, Doubt> doubts_, before_;
};

}  // namespace rdmaquota
