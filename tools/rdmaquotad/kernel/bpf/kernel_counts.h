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

// Kinds of objects, numbered as in enum uverbs_default_objects (include/uapi/rdma/ib_user_ioctl_cmds.h). Its 0, the
// device itself, stands for open contexts. The last two have no number there.
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

enum { opener_slots = 1 << 14, opener_probes = 8, object_slots = 1 << 17, object_probes = 8, known_kinds = 16 };

// What one process made through one open device file. The entry of the process that opened the file is in `openers`,
// those of others are in `guests`. Fields marked (opener) are used in `openers` only.
struct kernel_use {
    u64 id;            // (opener) index of this entry; the upper half grows with each file, so that no two share an id
    u64 file;          // (opener) address of the struct ib_uverbs_file; 0: the entry is free
    u64 cgroup;        // id of the process's cgroup when it came to this file
    u32 pid;           // 0: not filled in yet
    u32 opener;
    u32 device_index;
    u32 whole;         // (opener) the program saw the file being opened: nothing was made by it before
    u32 reregistered;  // (opener) MRs may have changed their length: mr_bytes is what they had at first
    u8 kinds[known_kinds];  // (opener) of the `apis`; 0: not known yet
    u64 apis[known_kinds];  // (opener) addresses of struct uverbs_api_object that were seen
    u64 mr_bytes;
    u64 dm_bytes;
    u64 destroyed[kind_count];  // of those created, hence never more; copied before these, for the same reason
    u64 created[kind_count];
    char device[64];
};

// An object that was counted, and what its end subtracts.
struct counted_object {
    u64 opener;  // id of the entry in `openers`
    u64 bytes;
    u32 pid;     // the guest that it was counted for; 0: for the opener
    u32 kind;
};

struct object_slot {
    u64 object;  // address of the struct ib_uobject; 0: free
    struct counted_object counted;
};

struct guest_key {
    u64 opener;  // id of the opener's entry; or the index of a device: what `pid` made through files that are closed
    u32 pid;
    u32 zero;
};

struct kernel_event {
    u32 ended;  // 0: opened
    u32 pid;
};
