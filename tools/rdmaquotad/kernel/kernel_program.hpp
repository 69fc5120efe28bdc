// The BPF program of bpf/kernel_counts.bpf.c: loading it, and reading its maps. One thread.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "policy/result.hpp"
#include "tools/common/guard/kernel_counts.h"
#include "tools/rdmaquotad/kernel/guard_program.hpp"
#include "tools/rdmaquotad/kernel/kernel_tables.hpp"

struct kernel_counts;  // of the generated skeleton
struct ring_buffer;

namespace rdmaquota {

class KernelProgram {
public:
    // Loads the program and attaches it; with `guarded` the guard
    // too, which then has listed what was there before, and refuses nothing yet. `blind` gets a line for each hook that the
    // running kernel lacks, with the figures that are unknown without it. Fails, and says why, without the hooks for creation
    // and destruction.
    static Result<KernelProgram> attach(std::vector<std::string>& blind, bool guarded);

    KernelProgram(KernelProgram&&) noexcept;
    KernelProgram& operator=(KernelProgram&&) noexcept;
    ~KernelProgram();

    int fd() const noexcept;             // readable when there are events
    std::vector<kernel_event> events();  // since the last call

    KernelTables& tables() noexcept;
    u64 lost() const noexcept;         // creations that found no room; only grows
    u64 missed() const noexcept;       // calls that the program did not see; only grows
    u64 late() const noexcept;         // those that it finds out later, or GuardProgram::list_again() does; only grows
    bool tells_misses() const noexcept;  // false: there may be more of both than the kernel tells

    GuardProgram* guard() noexcept;  // null without it

private:
    struct Parts;
    explicit KernelProgram(std::unique_ptr<Parts> parts) noexcept;
    std::unique_ptr<Parts> parts_;
};

}  // namespace rdmaquota
