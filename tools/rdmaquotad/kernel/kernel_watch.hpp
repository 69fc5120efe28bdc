// What the kernel really made, for whom: the counts of a BPF program in the kernel, and what RDMA
// netlink lists where that program cannot see.
//
// One thread. Nothing here throws or logs; what cannot be seen is told by `blind`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "policy/resource.hpp"
#include "policy/result.hpp"
#include "tools/rdmaquotad/kernel/netlink_snapshot.hpp"

namespace rdmaquota {

// What one process made through device contexts that one process opened: its own, or, after a fork or
// when the descriptor was passed on, another's.
struct KernelUse {
    std::uint32_t pid = 0;     // the process that made the objects, in the sidecar's pid namespace
    std::uint32_t opener = 0;  // the process that opened the device, mostly the same
    std::uint64_t cgroup = 0;  // id (as the inode number in cgroup2) of the group that was charged; 0: not known
    std::string device;
    ResourceCounts live{};     // only of resources that `knows`; the others are 0
    ResourceCounts created{};  // since the program was attached
    ResourceCounts destroyed{};
    // Of live[hca_object], those of a driver's own kinds, such as libmlx5's doorbell pages and DEVX objects.
    std::uint64_t driver_objects = 0;
    // The device was opened before the program was attached: only what is `in_netlink` is whole, mr_bytes has
    // on-demand memory in it, and hca_object may be too low.
    bool partial = false;
    // What netlink listed is that of an earlier snapshot: listing takes long, and is done less often.
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
    // Loads and attaches the program. Never fails: what it cannot do is in `blind`. Needs CAP_SYS_ADMIN, since no less
    // allows to read the type information of modules; without it, or without such information, there is netlink only.
    // While it is attached, the modules ib_core and ib_uverbs cannot be unloaded.
    static KernelWatch open();

    KernelWatch(KernelWatch&&) noexcept;
    KernelWatch& operator=(KernelWatch&&) noexcept;
    ~KernelWatch();  // detaches; nothing stays in the kernel

    // One line for each thing that cannot be seen and which figures are then not known; empty when all is.
    const std::vector<std::string>& blind() const noexcept;

    // The counts come from the program. Else they are what netlink lists, and there are no events. The program is
    // tried again by `snapshot` every ten seconds, since the kernel loads ib_uverbs with the first device.
    bool attached() const noexcept;
    // Of processes that started at this time or later, nothing is missing; in clock ticks since boot, as their
    // start_time. Netlink does not list what a thread made that has ended.
    std::uint64_t since() const noexcept;

    // What programs ask for (send_wr, recv_wr, cqe, srq_wr) only their own process knows; without the program, only
    // what is `in_netlink`.
    bool knows(Resource resource) const noexcept;

    // Readable when `poll` has something to tell, for poll(2); -1 while not attached.
    int fd() const noexcept;

    // Whatever happened since the last call, oldest first; does not wait. A process may be told as ended more than
    // once: each of its last threads could be the last.
    std::vector<KernelEvent> poll();

    // Who has what at this moment, and what those who still run have made before.
    Result<std::vector<KernelUse>> snapshot();

private:
    struct State;
    explicit KernelWatch(std::unique_ptr<State> state) noexcept;
    std::unique_ptr<State> state_;
};

}  // namespace rdmaquota
