// The BPF program of bpf/kernel_counts.bpf.c: loading it, and reading its maps. One thread.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "policy/result.hpp"
#include "tools/rdmaquotad/kernel/bpf/kernel_counts.h"

struct kernel_counts;  // of the generated skeleton
struct ring_buffer;

namespace rdmaquota {

class KernelProgram {
public:
    // Loads the program and attaches it, by fentry, else by kprobe. `blind` gets a line for each hook that the
    // running kernel lacks, with the figures that are then not known. Without those for creation and
    // destruction there is no program: the error says why.
    static Result<KernelProgram> attach(std::vector<std::string>& blind);

    KernelProgram(KernelProgram&&) noexcept;
    KernelProgram& operator=(KernelProgram&&) noexcept;
    ~KernelProgram();

    int fd() const noexcept;             // readable when there are events
    std::vector<kernel_event> events();  // since the last call

    // What each process made: by the opener of a file, by others, and through files that are closed.
    struct Entry {
        kernel_use use;
        bool open;  // not: only created and destroyed mean something
    };
    Result<std::vector<Entry>> read();

    std::vector<u32> holders() const;  // the processes whose end is of interest
    void forget(u32 pid);  // its totals, and that its end is of interest; for one that has ended
    u64 lost() const noexcept;  // changes that found no room

private:
    struct Parts;
    explicit KernelProgram(std::unique_ptr<Parts> parts) noexcept;
    std::unique_ptr<Parts> parts_;
};

bool has_ended(u32 pid);  // the process

}  // namespace rdmaquota
