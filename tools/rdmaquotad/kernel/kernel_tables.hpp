// What the BPF program counts (bpf/uses.bpf.h), read from its memory and its maps. One thread.
#pragma once

#include <set>
#include <vector>

#include "policy/result.hpp"
#include "tools/common/guard/kernel_counts.h"

struct bpf_map;

namespace rdmaquota {

// What a process made through one file: the opener, or another; or what each made through files that are closed.
struct KernelEntry {
    kernel_use use;
    bool open;          // else only `created` and `destroyed` mean something
    bool whole;         // else the file was opened before the program ran, and objects may be missing
    bool reregistered;  // MRs may have changed their length: `mr_bytes` is what they had at first
};

class KernelTables {
public:
    KernelTables() = default;
    // `openers` has `opener_slots` entries; both maps are the program's, which outlives this.
    KernelTables(const kernel_use* openers, const bpf_map* guests, const bpf_map* holders)
        : openers_(openers), guests_(guests), holders_(holders) {}

    std::vector<KernelEntry> read();
    std::vector<u32> holders() const;         // the processes whose end is of interest
    std::vector<kernel_use> forget(u32 pid);  // drops the totals of a process that has ended, and tells them

private:
    const kernel_use* openers_ = nullptr;
    const bpf_map* guests_ = nullptr;
    const bpf_map* holders_ = nullptr;
    std::set<u32> devices_;  // numbers of uverbs devices, as far as seen
};

bool has_ended(u32 pid);  // the process

}  // namespace rdmaquota
