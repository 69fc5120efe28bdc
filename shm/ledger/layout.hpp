// The byte layout of a tenant's ledger. Data only; shm/ledger/ledger.hpp has the operations.
//
//   ledger file (tmpfs, sparse; a Boost.Interprocess managed segment with the one named object
//   "ledger" at a fixed offset, see shm/ledger/ledger_file.hpp)
//
//   +0         LedgerHeader      magic, version, sizes, cursors
//   +4096      DeviceEntry[64]   which device or port has which index
//   +12288     gates             u64[64][24]   tag:12 | amount:52
//   +24576     peaks             u64[64][24]   highest amount a gate had when something was uncharged
//   +36864     soft_since        u64[64][24]   since when a soft limit is exceeded
//   +49152     demand            u64[64][24]   tag:12 | amount:52, what was last asked for and not granted
//   +61440     Event[1024]       denials, a ring
//   +258048    Event[256]        repairs, another, so that neither takes the other's room
//   +307200    SlotState[4096]   which slots are taken, apart from them so that a search is short
//   +323584    Slot[4096]        one per owner: identity, ops word
//   +585728    usage             u64[64][4096][24], by device first: adding up one device reads contiguous memory
//   +50917376  PastActivity[64]  what ended owners did on each device
//   +50925568  Activity          [64][4096], what each owner did on each device
//
// Every word that more than one process writes is a u64 or u32 accessed with std::atomic_ref.
// Nothing here holds a pointer, and every index that is read from here is checked before use:
// every process that may charge can write any bytes here.
//
// A change of any byte of this layout needs a new `layout_version`; test/unit/shm/layout_test.cpp
// repeats the numbers so that no change goes unnoticed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "policy/policy.hpp"
#include "policy/resource.hpp"
#include "shm/policy/limits_segment.hpp"

namespace rdmaquota {

inline constexpr std::uint64_t ledger_magic = 0x31524744'51414d52;  // "RMAQDGR1", little-endian

inline constexpr std::uint32_t device_slots = 64;
inline constexpr std::uint32_t owner_slots = 4096;
inline constexpr std::uint32_t owners_per_lock_file = 64;
inline constexpr std::uint32_t event_slots = 1024;
inline constexpr std::uint32_t repair_slots = 256;
inline constexpr std::size_t comm_bytes = 16;  // as the kernel's TASK_COMM_LEN

struct LedgerHeader {
    std::uint64_t magic;
    std::uint32_t layout_version;
    std::uint32_t header_bytes;
    std::uint64_t total_bytes;
    std::uint32_t device_slots;
    std::uint32_t owner_slots;
    std::uint32_t resource_slots;
    std::uint32_t event_slots;
    std::uint64_t slots_used;   // one more than the highest owner slot ever claimed
    std::uint64_t next_group;   // which lock file's owners the next claim looks at
    std::uint64_t event_head;   // number of denials ever begun
    std::uint64_t reaped;       // owners reaped, for people
    std::uint64_t reconciled;   // gates corrected, for people
    std::uint64_t claims;       // owner slots ever claimed, counted before the slot is live
    std::uint64_t repair_head;  // number of repairs ever begun
    std::uint64_t reserved0[4];
    std::uint64_t pause;  // not 0: someone proves a denial and asks newcomers to hold back a moment
    std::uint64_t total_rates[rate_count];  // of the sum over devices, see shm/ledger/pace.hpp
    std::uint64_t reserved[493];
};
static_assert(sizeof(LedgerHeader) == 4096);

struct DeviceIdentity {
    char text[56];
};

// A device, or a port of one (see is_port), whose cells are apart from its device's. Claimed for good by
// setting `key` (a hash of the identity, never 0, odd for a port) with one compare-and-swap. Every process that looks the
// device up then writes the identity, always the same bytes, and the name that the device has at that time.
struct DeviceEntry {
    std::uint64_t key;
    DeviceText name;
    DeviceIdentity identity;
};
static_assert(sizeof(DeviceEntry) == 128);

// By resource, and behind these, of `gates` and `usage`, the words of the rates (shm/ledger/pace.hpp); of `peaks` and `soft_since`,
// for how many ns and how often the rate delayed a call; of `demand`, what it is of a resource.
using CellRow = std::uint64_t[resource_slots];

// A gate's word: the amount in the low 52 bits; above it a tag that goes up with each correction.
inline constexpr unsigned gate_tag_shift = 52;
inline constexpr std::uint64_t gate_amount_mask = max_amount;

enum class EventKind : std::uint32_t {
    none,
    denied,      // a limit held
    would_deny,  // audit mode: it would have
    unproved,    // denied after a bounded wait without a quiescent view
    reaped,      // a dead owner's usage was uncharged
    reconciled,  // a gate was corrected
    refused_by_device,  // the limits had room, and the call itself failed: kernel, driver or adapter
    delayed,            // by a rate; `used`: for how many ns the process's calls were delayed so far, `limit`: the rate
};

// Which of the two rings holds an event of this kind.
constexpr bool is_repair(EventKind kind) noexcept {
    return kind == EventKind::reaped || kind == EventKind::reconciled;
}

// Which limit an event is about, as one word: 0 for none, 1 for a process's limit and 3 for the tenant's, and one more
// when it bounds the sum over devices.
constexpr std::uint32_t event_scope(Scope scope, bool total) noexcept {
    return 1 + 2 * static_cast<std::uint32_t>(scope) + (total ? 1 : 0);
}

// `sequence` is 2n+1 while event number n of its ring is being written and 2n+2 when it is whole. A denial that a process
// meets again and again is one event with a count: `time_ns` and the amounts are of the last, `first_time_ns` of the first.
// What bounded a process when a call of its own failed with ENOMEM, to tell the causes apart. Figures are bytes; UINT64_MAX: no bound.
// Its own word, as everything of an event.
struct ProcessBounds {
    static constexpr std::uint64_t known = 1;       // the rest means something
    static constexpr std::uint64_t no_mapping = 2;  // not even a page could be mapped
    static constexpr std::uint64_t may_pin_all = 4; // RLIMIT_MEMLOCK does not bound it (CAP_IPC_LOCK)
    std::uint64_t flags;
    std::uint64_t pinned, pinned_limit;                // RLIMIT_MEMLOCK
    std::uint64_t address_space, address_space_limit;  // RLIMIT_AS
    std::uint64_t group, group_limit;                  // of its memory cgroup, or the one above that has least room
};

inline constexpr std::uint32_t no_resource = UINT32_MAX;

struct Event {
    std::uint64_t sequence;
    std::uint64_t time_ns;  // CLOCK_REALTIME
    EventKind kind;
    std::uint32_t scope;     // see event_scope
    std::uint32_t device;    // index of a DeviceEntry
    std::uint32_t resource;  // Resource, or no_resource
    std::uint32_t pid;
    std::uint32_t error;  // errno that the program got, 0 for none
    std::uint64_t used;
    std::uint64_t limit;
    std::uint64_t requested;
    char comm[comm_bytes];
    std::uint32_t uid;            // of the process
    std::uint32_t reason;         // Reason of the limit
    std::uint64_t count;          // how many alike this event stands for; 0 and 1 are one
    std::uint64_t first_time_ns;  // CLOCK_REALTIME of the first of them; 0 while there is one only
    std::uint64_t pid_namespace;  // in which `pid` is meant: its inode number; 0: not known
    ProcessBounds bounds;         // of `refused_by_device`
    std::uint64_t reserved[3];
};
static_assert(sizeof(Event) == 192);

enum class SlotState : std::uint32_t { free, live };

// The ops word: number of operations in flight in the low 16 bits, completed ones above. It only
// ever grows (begin: +1; end: +65536-1), so equal sums of ops words mean that nothing happened.
inline constexpr std::uint64_t ops_begin = 1;
inline constexpr std::uint64_t ops_end = (1ULL << 16) - 1;
inline constexpr std::uint64_t ops_in_flight_mask = (1ULL << 16) - 1;

// The owner of a slot by its own word; for people only, it never decides who is alive.
struct SlotOwner {
    std::uint32_t pid;
    std::uint32_t reserved;
    std::uint64_t start_time;  // clock ticks since boot, /proc/PID/stat field 22
    std::uint32_t uid;
    std::uint32_t claims;  // how often this slot was claimed
    char comm[comm_bytes];
};

struct Slot {
    std::uint64_t ops;
    SlotOwner owner;
    std::uint64_t total_rates[rate_count];  // as the header's, of the owner
};
static_assert(sizeof(Slot) == 64);  // a cache line

// The states that modify_qp can ask for, numbered as enum ibv_qp_state (libibverbs/verbs.h).
inline constexpr std::size_t qp_states = 7;

// Counts of one owner on one device, a cache line that only its own threads write, apart from the
// slot that everyone reads. They stop at their largest value.
struct Activity {
    std::uint64_t cq_events;             // completion events taken from a channel
    std::uint32_t qp_to[qp_states];      // state changes by modify_qp, by the state asked for
    std::uint32_t qp_failed[qp_states];  // those that failed or were denied
};
static_assert(sizeof(Activity) == 64);

// The same of all owners that have ended.
struct PastActivity {
    std::uint64_t cq_events;
    std::uint64_t qp_to[qp_states];
    std::uint64_t qp_failed[qp_states];
    std::uint64_t reserved;
};
static_assert(sizeof(PastActivity) == 128);

struct LedgerData {
    LedgerHeader header;
    DeviceEntry devices[device_slots];
    CellRow gates[device_slots];
    CellRow peaks[device_slots];
    CellRow soft_since[device_slots];  // CLOCK_BOOTTIME in ns of the last upward crossing; 0: never
    CellRow demand[device_slots];      // usage that was wanted; the tag goes up with each asking
    Event events[event_slots];
    Event repairs[repair_slots];
    SlotState states[owner_slots];
    Slot slots[owner_slots];
    CellRow usage[device_slots][owner_slots];
    PastActivity past_activity[device_slots];
    Activity activity[device_slots][owner_slots];

    // Leaves the file's zeroes as they are, so that unused slots never take memory.
    LedgerData() noexcept {}
};
static_assert(offsetof(LedgerData, devices) == 4096);
static_assert(offsetof(LedgerData, gates) == 12288);
static_assert(offsetof(LedgerData, peaks) == 24576);
static_assert(offsetof(LedgerData, soft_since) == 36864);
static_assert(offsetof(LedgerData, demand) == 49152);
static_assert(offsetof(LedgerData, events) == 61440);
static_assert(offsetof(LedgerData, repairs) == 258048);
static_assert(offsetof(LedgerData, states) == 307200);
static_assert(offsetof(LedgerData, slots) == 323584);
static_assert(offsetof(LedgerData, usage) == 585728);
static_assert(offsetof(LedgerData, past_activity) == 50917376);
static_assert(offsetof(LedgerData, activity) == 50925568);

// Cells of one owner on one device are three whole cache lines, which no other owner writes.
static_assert(sizeof(CellRow) == 3 * 64 && offsetof(LedgerData, usage) % 64 == 0);
static_assert(offsetof(LedgerData, slots) % 64 == 0 && offsetof(LedgerData, activity) % 64 == 0);

}  // namespace rdmaquota
