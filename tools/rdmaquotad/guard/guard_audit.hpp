// Corrects rows by what the files hold that count in them. The two differ for a moment while something is made; a difference
// that stays, while neither changes, is what a call has left that the kernel did not run the program for, or what was made
// while a file was settled; likewise a process's row that no file counts in is freed. One thread.
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
        int times;
    };
    bool stays(Place place, u64 used, u64 held);
    bool compare(u32 number, u32 resource, u64& used, u64 held);
    std::map<Place, Seen> doubts_, before_;
};

}  // namespace rdmaquota
