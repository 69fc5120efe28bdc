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
    kind_driver = 23,         // in a driver's own namespace
    kind_count = 24,
};

enum { opener_slots = 1 << 14, opener_probes = 32, object_slots = 1 << 17, object_probes = 8, known_kinds = 16 };

enum { whole_seen = 1, whole_unseen = 2 };

// What one process made through one open device file. The entry of the process that opened the file is in `openers`,
// those of others are in `guests`. Fields marked (opener) are used in `openers` only.
struct kernel_use {
    u64 id;            // (opener) index of this entry; the upper half grows with each file, so that no two share an id
    u64 file;          // (opener) address of the struct ib_uverbs_file; 0: the entry is free
    u64 cgroup;        // id of the process's cgroup when it came to this file
    u32 pid;           // 0: not filled in yet
    u32 opener;
    u32 uverbs;        // number of the uverbs device, which stays while the device exists; its name may change
    u32 whole;         // (opener) whole_seen: the program saw the file being opened, or whole_unseen: soon after; nothing was made
                       // by it before
    u32 reregistered;  // (opener) MRs may have changed their length: mr_bytes is what they had at first
    u32 forbidden;     // (opener) not 0: the guard lets it make nothing more
    u32 has_ended;     // (opener) objects that have ended are counted still
    u32 begun;         // (opener) the guard knows the file, or there is no guard: before, nobody counts in it
    u8 kinds[known_kinds];  // (opener) of the `apis`; 0: not known yet
    u64 apis[known_kinds];  // (opener) addresses of struct uverbs_api_object that were seen
    u64 mr_bytes;
    u64 dm_bytes;
    u64 destroyed[kind_count];  // of those created, hence never more; copied before these, for the same reason
    u64 created[kind_count];
};

// An object that was counted, and what its end subtracts.
struct counted_object {
    u64 opener;  // id of the entry in `openers`
    u64 bytes;
    u32 pid;     // the guest that it was counted for; 0: for the opener
    unsigned short kind;
    unsigned short unpinned;  // an MR that pins nothing, whatever its length
};

struct object_slot {
    u64 object;  // address of the struct ib_uobject; 0: free
    struct counted_object counted;
};

struct guest_key {
    u64 opener;  // id of the opener's entry; or the number of a uverbs device: what `pid` made through files that are closed
    u32 pid;
    u32 zero;
};

// --- the guard: what it decides by -------------------------------------------------------------

// What it limits, by kind; then objects of every kind, and bytes. Kinds without a limit of their own share the last.
enum { guard_object = 16, guard_mr_bytes = 17, guard_dm_bytes = 18, guard_other = 19, guard_resources = 20 };

// Behind these, the rates: commands and bytes registered a second.
enum { guard_rates = 2, guard_commands = guard_resources, guard_registered, guard_limits };

// Behind it no sum is larger, since each amount is below 2^52: a figure may be below zero for a moment.
#define guard_no_limit 0x7fffffffffffffffULL

// The first rows are those of processes, entered by the program; then come the sidecar's.
enum { guard_rows = 1 << 15, process_rows = 1 << 13, process_probes = 64, guard_depth = 12, most_guarded_devices = 64 };
enum { reservation_slots = 1 << 17, reservation_probes = 32, opening_slots = 1 << 14, opening_probes = 32 };

enum { row_clears = 1 };  // no process's

// A rate, in CLOCK_MONOTONIC.
enum { guard_pace_shift = 20 };
#define guard_longest_pace (1ULL << 42)  // 73 minutes: shifted, it is still a number
struct guard_pace {
    u64 unit;      // how long one command or byte takes, in 2^-20 ns; 0: there is no rate
    u64 limit_ns;  // how far ahead `paid` may be, guard_longest_pace at most; 0: nothing may be made
    u64 paid;      // until when all that was made is paid for
};

// What a process or a tenant uses of one device, and may use of it.
struct guard_row {
    u64 limit[guard_resources];  // guard_no_limit at most
    u64 used[guard_resources];
    u64 refused[guard_limits];
    struct guard_pace pace[guard_rates];  // (process) only `paid`
    u32 enforced;  // 0: what exceeds the limits is counted as refused, and made
    u32 total;     // the row whose limits hold for the sum over devices; 0: none
    u32 next;      // (tenant) the row of its next device; the last one's is the first
    u32 pid;       // (process)
    u64 process;   // (process) which one, on which device: a hash, and how many files it has open; 0: the row is free,
                   // `row_clears`: it is about to be
    u64 since;     // (process) when it started, in nanoseconds since boot; no two processes have this and the pid the same
    u32 process_class;  // (process) the row that its limits are taken from
    u32 exceeded;  // a bit for each resource of which it exceeded a limit, a tenant also one above it, by a way that cannot be refused
    u64 entered;   // (process) how many files ever did
    u32 told_ms[guard_limits];  // when it was last told that something was refused
    u32 paced;     // (row 0) whether any row has a rate
    u32 zero;
};

// Whose a row is: a tenant's by its key, on a device ("uverbs3") or for "total", for each of its processes (0) or as a whole (1). Names
// are filled up with NULs.
struct guard_name {
    char tenant[128];
    char device[64];
    u32 scope;
    u32 zero;
};

// Where objects made through a file count: its process, its tenant, and all above that, the node last.
struct guard_stamp {
    u32 count;  // of rows
    u32 process_class;  // 0: processes are not counted
    int deny_errno;
    u32 exempt;  // not 0: counts, and is never refused, also by what is above
    u32 rows[guard_depth];  // behind the last one: 0, which is nobody's
};

// Who opens a device, as far as it decides the tenant. What the policy's matches do not look at is `guard_any`; so are the
// ids in a cgroup that is bound to a tenant, {cgroup, guard_any, uverbs}. Beside those who are known, there is anybody who
// is not known, {0, 0, uverbs}, with the rows of `default`.
enum { guard_any = 1 };
struct guard_who {
    u64 cgroup;  // id
    u64 ids;     // a hash of user, group and groups, see GUARD_HASH_BEGIN; 0: too many groups to tell
    u32 uverbs;  // number of the uverbs device
    u32 uid;     // where there are `ids` of a match, itself, since groups can be chosen so that the hashes are the same; else 0
};

// While nobody knows whose a file is, what is made through it counts in `waited` and in the rows of `waiting`. Once it is known,
// in `held` and in those of `stamp`; and when the last thread is through that began to count before, what waited moves there
// (guard_waiting.bpf.h). In `waits`: how many threads are counting in this way, and these bits.
enum { waits_known = 1 << 30, waits_moved = 1 << 29 };

// What belongs to the opener's entry of the same index.
struct guard_file {
    u64 held[guard_resources];    // made or about to be made through it, by 64 bits' wrapping: `waited` is the rest
    u64 waited[guard_resources];
    u64 id;        // the opener's
    u64 unstamped; // the same while it waits for the sidecar, and counts for the node only; then 0
    u64 since;     // when its process started
    u64 changing;  // bytes in `held` of re-registrations that have not ended
    u64 returns;   // how often something of it was subtracted anywhere, by which the sidecar's audit knows what is at rest
    struct guard_who who;
    u32 pid;
    u32 uid, gid;  // of who opened it
    u32 waits;
    u32 doubtful;  // it may have too many bytes, by what threads that had reserved nothing changed
    u32 process_row;
    u32 enters_row;  // the row that this is about to be, or another's, which the audit does not free
    u32 learnt;    // 1 + the kind that was made last by a method that is not known; 0: none was
    u32 learnt_by; // that method
    u32 closely;   // looked at first, before room is taken
    u32 tid;       // the thread that opened it, which may be another user than its process
    u32 zero;
    struct guard_stamp waiting, stamp;
    u64 settling;  // not 0: the sidecar is saying whose the file is, or one was that had this place
};

// A file by which a thread is opening a context.
struct opening {
    u64 file;    // address of the struct ib_uverbs_file; 0: free
    u64 thread;  // the last one's where both are not 0
};

// What a thread was allowed to make, until it has made it. Of what a method makes that is not known, the method is in `bytes`.
struct reservation {
    u64 thread;  // its address; 0: free
    u64 opener;  // id
    u64 bytes;
    u32 kind;
    u8 displaced;  // not in its thread's first slot
    u8 replaced;   // a re-registration has made an MR that has `bytes`, which ends the one before
    u8 zero[2];
};

// FNV-1a over 32-bit words; of ids in this order: user, group, how many groups, groups. Never 0 or guard_any.
enum { most_hashed_groups = 1024 };
#define GUARD_HASH_BEGIN 14695981039346656037ULL
#define GUARD_HASH_NEXT(hash, word) (((hash) ^ (u32)(word)) * 1099511628211ULL)
#define GUARD_HASH_END(hash) ((hash) | 2)

enum { guard_told_ms = 50 };  // at most one event in this time for refusals by the same row and resource; each refusal counts
#define guard_alone_ns 5000000000ULL  // the sidecar is taken for gone when it was not seen for so long

enum { guard_off = 0, guard_watch = 1, guard_deny = 2 };
enum { told_refused = 1, told_exceeded = 2, told_killed = 3 };

struct guard_event {
    u32 what;
    u32 pid;
    u32 file;  // index
    u32 row;
    u32 resource;
    u32 uid;     // the effective one
    u64 amount;  // bytes, if it is about bytes
    u64 used, limit, refused;  // at that moment
    char comm[16];
};

// An opener whose tenant the sidecar has to resolve.
struct guard_unknown {
    struct guard_who who;
    u32 pid, tid;
};

struct settle_request {
    u64 id;  // the file's; 0: of none, only to be seen
    struct guard_stamp stamp;
};

struct kernel_event {
    u32 ended;  // 0: opened
    u32 pid;
};
