// The guard's part of the BPF program: its look at requests, its tables, and what the kernel keeps of it. One thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "policy/result.hpp"
#include "tools/rdmaquotad/kernel/bpf/kernel_counts.h"

struct bpf_link;
struct bpf_object;

namespace rdmaquota {

class GuardProgram {
public:
    // Words of the program, which it changes or reads at any time.
    struct Words {
        const kernel_use* openers;  // [opener_slots]: of the files
        u32* mode;                  // guard_off, guard_watch or guard_deny
        u32* judges;                // not 0: who makes too much by a way that is not looked at is killed
        u32 *asks_cgroup, *asks_ids;  // what the policy's matches look at
    };

    // Before the program is loaded: which of its parts are. `has`: whether the kernel has such a function.
    static void select(bpf_object* object, bool guarded, const std::function<bool(const char*)>& has);
    // Once everything else is attached: the look, and a list of what was made before. Links are added to `links`.
    static Result<GuardProgram> attach(bpf_object* object, std::vector<bpf_link*>& links, const Words& words);

    GuardProgram(GuardProgram&&) noexcept;
    GuardProgram& operator=(GuardProgram&&) noexcept;
    ~GuardProgram();

    const Words& words() const noexcept;
    guard_row* rows() const noexcept;    // [guard_rows]; the program changes them at any time
    guard_file* files() const noexcept;  // [opener_slots]

    int fd() const noexcept;            // readable when there are events
    std::vector<guard_event> events();  // since the last call

    // Says whose a file is that waits for it. False when it waits no more.
    bool settle(u64 file, const guard_stamp& stamp);
    // The same for all that are opened from now on.
    void know(const guard_who& who, const guard_stamp& stamp);
    // Takes back what was known of others than these.
    void know_only(const std::set<std::string>& kept);  // by `bytes_of`
    static std::string bytes_of(const guard_who& who) {
        return {reinterpret_cast<const char*>(&who), sizeof who};
    }

    // Lets the kernel keep the program when this process ends, instead of what it kept before (guard_pins.hpp).
    Result<void> keep() const;

private:
    struct Parts;
    explicit GuardProgram(std::unique_ptr<Parts> parts) noexcept;
    std::unique_ptr<Parts> parts_;
};

}  // namespace rdmaquota
