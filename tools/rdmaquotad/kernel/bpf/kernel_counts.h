// What the program in the kernel and the sidecar share: the keys and values of its maps.
#pragma once

#ifdef __bpf__
typedef __u8 u8;
typedef __u32 u32;
typedef __u64 u64;
#else
#include <cstdint>
using u8 = std::uint8_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
#endif

// Kinds of objects are numbered as in enum uverbs_default_objects (include/uapi/rdma/ib_user_ioctl_cmds.h),
// whose 0, the device itself, stands for open contexts. Two have no number there.
enum {
    kind_handle = 0,
    kind_pd = 1,
    kind_cq = 3,
    kind_qp = 4,
    kind_srq = 5,
    kind_ah = 6,
    kind_mr = 7,
    kind_mw = 8,
    kind_flow = 9,
    kind_xrcd = 10,
    kind_rwq_ind = 11,
    kind_wq = 12,
    kind_dm = 14,
    kind_counters = 15,
    kind_second_handle = 22,  // of a shared XRC QP
    kind_driver = 23,         // in a driver's own namespace
    kind_count = 24,
};

enum { opener_slots = 1 << 14, opener_probes = 8, known_kinds = 16 };

// What one process made through one open device file.
struct kernel_use {
    u64 file;        // address of the struct ib_uverbs_file, in the opener's entry only; 0: the entry is free
    u64 cgroup;      // id of its group when it came to this file
    u32 pid;         // 0: not filled in yet
    u32 opener;
    u32 device_index;
    u32 reregistered;  // not 0: MRs may have changed their length, so that mr_bytes is not known
    u64 special;     // objects of this file that are in the map `specials`; in the opener's entry only
    u64 apis[known_kinds];  // addresses of struct uverbs_api_object, as far as seen; in the opener's entry only
    u8 kinds[known_kinds];  // theirs; 0: not yet
    u64 mr_bytes;
    u64 dm_bytes;
    u64 created[kind_count];
    u64 destroyed[kind_count];
    char device[64];
};

// A process other than the opener; or, with the index of a device as `file`, what a process made through
// files that are closed.
struct guest_key {
    u64 file;
    u32 pid;
    u32 zero;
};

struct kernel_event {
    u32 ended;  // 0: opened
    u32 pid;
};
