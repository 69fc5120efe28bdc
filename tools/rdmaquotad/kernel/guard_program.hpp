// The guard's part of the BPF program: its look at requests, its tables, and what the kernel keeps of it. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "policy/result.hpp"
#include "tools/common/guard/kernel_counts.h"
#include "tools/rdmaquotad/kernel/program_pins.hpp"

struct bpf_object;

namespace rdmaquota {

// How it looks at requests: by BPF's own security hook, which is never skipped; or, where that is not among the kernel's security
// modules, by changing what the kernel's hook returns, which is skipped where another thread was preempted in it.
enum class Look : std::uint8_t { security_hook, modified_return };

class GuardProgram {
public:
    // Words of the program, which it changes or reads at any time.
    struct Words {
        kernel_use* openers;        // [opener_slots]: of the files
        const u64* refusals;        // how many there have been
        u64* seen_ns;               // when settle() was called last; 0: nobody calls it any more
        u64* judges;                // from when on who makes too much by a way that is not looked at is killed (bpf/guard_rows.bpf.h)
        const u32* asked;  // not 0: the kernel has called the look
        u32 *asks_cgroup, *asks_ids;  // what the policy's matches look at
        u32* lists_all;               // not 0: the list of what was made goes through files that were seen being opened, too
    };

    // Before the program is loaded: which of its parts are; none without a look. `has`: whether the kernel has such a function.
    static void select(bpf_object* object, std::optional<Look> look, const std::function<bool(const char*)>& has);
    // Once everything else is attached: the look, and a list of what was made before. Links are added to `links`, which must
    // stay there.
    static Result<GuardProgram> attach(bpf_object* object, std::vector<ProgramLink>& links, const std::string& version,
                                       const Words& words);
    // Of one that the kernel has kept: all of it is attached. The descriptors become its own.
    static Result<GuardProgram> take_over(bpf_object* object, const RunPrograms& run, const std::string& version,
                                          const Words& words);

    GuardProgram(GuardProgram&&) noexcept;
    GuardProgram& operator=(GuardProgram&&) noexcept;
    ~GuardProgram();

    // It was there before this process, with what it knew.
    bool was_kept() const noexcept;
    const Words& words() const noexcept;
    u32& mode() const noexcept;  // guard_off, guard_watch or guard_deny
    int names() const noexcept;  // the descriptor of the map
    guard_row* rows() const noexcept;    // [guard_rows]; the program changes them at any time
    guard_file* files() const noexcept;  // [opener_slots]

    int fd() const noexcept;            // readable when there are events
    std::vector<guard_event> events();  // since the last call
    std::vector<guard_unknown> unknown();  // before that last call

    // Says whose a file is that waits for it. False when it waits no more. Of the file 0: only that this process is there.
    bool settle(u64 file, const guard_stamp& stamp);
    // The same for all that are opened from now on.
    bool know(const guard_who& who, const guard_stamp& stamp);  // false: there is no room
    std::vector<guard_who> known() const;
    // Takes back what was known of others than these.
    void know_only(const std::set<std::string>& kept);  // by `bytes_of`
    static std::string bytes_of(const guard_who& who) {
        return {reinterpret_cast<const char*>(&who), sizeof who};
    }

    // Counts what was missed of what was made. Whatever is made or destroyed meanwhile may be missed again, and comes the next
    // time.
    Result<void> list_again();

    // Lets the kernel keep the program when this process ends (guard_pins.hpp), where it does not yet.
    Result<void> keep();
    // Turns off, and lets the kernel forget, what it keeps of other versions.
    Result<void> replace_others() const;

private:
    struct Parts;
    explicit GuardProgram(std::unique_ptr<Parts> parts) noexcept;
    std::unique_ptr<Parts> parts_;
};

}  // namespace rdmaquota
