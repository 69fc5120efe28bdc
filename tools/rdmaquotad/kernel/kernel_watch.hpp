// What the kernel really made, and for whom: the counts of a BPF program in the kernel, and what RDMA netlink lists
// where that program cannot see.
//
// One thread. Nothing here throws or logs; `blind` tells what cannot be seen.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "policy/resource.hpp"
#include "policy/result.hpp"
#include "tools/rdmaquotad/kernel/netlink_snapshot.hpp"

namespace rdmaquota {

class GuardProgram;

// What one process made through device contexts that it opened itself, or, after a fork or when the descriptor was
// passed on, that one other process opened.
struct KernelUse {
    std::uint32_t pid = 0;     // the process that made the objects, in the sidecar's pid namespace
    std::uint32_t opener = 0;  // the process that opened the device, mostly the same
    std::uint64_t cgroup = 0;  // id (inode number in cgroup2) of the group that was charged; 0: not known
    std::string device;
    ResourceCounts live{};       // of resources that `knows`; the others are 0
    ResourceCounts created{};    // since the program was attached
    ResourceCounts destroyed{};  // of those created
    // Of live[hca_object], those of a driver's own kinds, such as libmlx5's doorbell pages and DEVX objects.
    std::uint64_t driver_objects = 0;
    // A device was opened before the program was attached, or the program has missed calls: live[] is what netlink
    // lists where it is `in_netlink` (with on-demand memory in mr_bytes), and may else be too low. created[] and
    // destroyed[] have only what the program saw being created.
    bool partial = false;
    // Netlink's figures are of an earlier snapshot: listing takes long, and is done less often.
    bool stale = false;
};

struct KernelEvent {
    enum class Kind : std::uint8_t {
        opened,  // a process opened a device
        ended,   // a process that had one open is gone, and its descriptors and locks with it
    };
    Kind kind;
    std::uint32_t pid;
};

class KernelWatch {
public:
    // Loads and attaches the program. Never fails: what it cannot do is in `blind`. Needs CAP_SYS_ADMIN to read the
    // type information of modules; without it, or without such information, there is only netlink. While the program is
    // attached, the modules ib_core and ib_uverbs cannot be unloaded.
    // With `guarded`, the guard is loaded too; where that is impossible, `blind` says so, and `snapshot` tries again every minute.
    static KernelWatch open(bool guarded = false);

    KernelWatch(KernelWatch&&) noexcept;
    KernelWatch& operator=(KernelWatch&&) noexcept;
    ~KernelWatch();  // detaches; nothing stays in the kernel

    // One line for each thing that cannot be seen, with the figures that are unknown because of it.
    const std::vector<std::string>& blind() const noexcept;

    // Whether the counts come from the program. Else they are what netlink lists, and there are no events; `snapshot`
    // tries again every ten seconds, since the kernel loads ib_uverbs with the first device.
    bool attached() const noexcept;
    // Nothing is missing for processes that started at this time or later; in clock ticks since boot, as their
    // start_time. For older ones, netlink does not list what a thread made that has ended since.
    std::uint64_t since() const noexcept;

    // Not for what only the process itself knows (send_wr, recv_wr, cqe, srq_wr); without the program, only for what is
    // `in_netlink`.
    bool knows(Resource resource) const noexcept;

    // How many calls the program has missed so far: kernels that preempt threads inside of it skip it meanwhile. Whoever
    // had a device open then is `partial` until it closes it.
    std::uint64_t missed() const noexcept;

    GuardProgram* guard() noexcept;  // null without it, and while not attached

    // Readable when `poll` has something to tell, for poll(2); -1 while not attached.
    int fd() const noexcept;

    // What happened since the last call, oldest first. Does not wait. The end of a process may be told more than once,
    // since each of its last threads could be the last.
    std::vector<KernelEvent> poll();

    // What each process has at this moment, and what those that still run have made and destroyed.
    Result<std::vector<KernelUse>> snapshot();

    // What processes had made and destroyed in the end that are in no snapshot any more, since the last call.
    std::vector<KernelUse> take_ended();

private:
    struct State;
    explicit KernelWatch(std::unique_ptr<State> state) noexcept;
    std::unique_ptr<State> state_;
};

}  // namespace rdmaquota
