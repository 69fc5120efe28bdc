// A tenant's ledger: who uses how much.
//
// Invariants (test/model has mutants of I1 to I4; test/fuzz holds I5):
//
//   I1  The sum of live usage never exceeds an enforced limit.
//   I2  After any kill, usage returns to the truth with no restart and no administrator.
//   I3  A stopped process blocks nobody.
//   I4  Nobody is denied while a quiescent view has room.
//   I5  No bytes written into the segment can crash or hang another process.
//
// How they are kept:
//
//   Slots are the truth. An owner (a process) holds one slot with its usage per device and
//   resource. It keeps an OFD write lock on its byte of a lock file through a *mapping* of that
//   file: an OFD lock lives as long as its open file description, and a mapping keeps that alive
//   without a descriptor number that the host program could close, reuse or run out of. The kernel
//   drops the lock when the last process that inherited the mapping exits or execs.
//
//   Gates are the fast check: one word per device and resource, never below the sum of the slots.
//   charge raises the gate, then the slot; uncharge lowers the slot, then the gate. A death at any
//   instruction leaves a gate too high, never too low (I1), and `reap` and `reconcile` find what
//   leaked (I2). No step waits for another process (I3).
//
//   A denial is proved: reap the dead, reconcile the gate on a quiescent view, try again, and deny
//   only when that view is full (I4), or after a bounded wait without a quiescent view, which the
//   denial says. To get its view among busy processes, the prover asks those that begin an operation
//   to hold back; they do so for a few yields at most, whatever becomes of the prover.
//
// test/model/ledger.pml says the same in Promela, step by step; spin searches it for an order of
// steps, kills and stops that breaks I1 to I4.
//
// Every function may be called from any thread of any process that maps the ledger; none throws
// from the charge path.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/result.hpp"
#include "shm/ledger/access.hpp"
#include "shm/ledger/layout.hpp"
#include "shm/mapping.hpp"

namespace rdmaquota {

// The longest that a charge waits for a quiescent view before it denies without proof. Operations
// take well under a microsecond, so this happens only when a process was stopped in the middle
// of one, or when many more processes than cores use the ledger without a pause.
inline constexpr std::uint64_t proof_wait_ns = 50'000'000;

// What one verbs object costs: up to four resources.
struct Amounts {
    static constexpr std::size_t capacity = 4;
    std::uint8_t count = 0;
    Resource resource[capacity] = {};
    std::uint64_t amount[capacity] = {};

    // Nothing is added for an amount of 0; amounts above largest_charge are cut to it.
    constexpr Amounts& add(Resource r, std::uint64_t n) noexcept {
        if (n == 0 || count == capacity) return *this;
        resource[count] = r;
        amount[count++] = n > largest_charge ? largest_charge : n;
        return *this;
    }

    constexpr std::uint64_t of(Resource r) const noexcept {
        for (std::size_t i = 0; i < count; ++i)
            if (resource[i] == r) return amount[i];
        return 0;
    }

    // Replaces the amount of `r`, which is added when it was 0.
    constexpr void set(Resource r, std::uint64_t n) noexcept {
        for (std::size_t i = 0; i < count; ++i)
            if (resource[i] == r) {
                amount[i] = n > largest_charge ? largest_charge : n;
                return;
            }
        add(r, n);
    }
};

// The limits that hold for one resource of a charge; `unlimited` where there is none.
struct Limits {
    std::uint64_t process = unlimited;
    std::uint64_t process_total = unlimited;  // sum over devices
    std::uint64_t tenant = unlimited;
    std::uint64_t tenant_total = unlimited;  // sum over devices
};

// Which of the four limits a charge would exceed.
struct FullLimit {
    Scope scope;
    bool total;  // the sum over devices
};

struct Denial {
    Resource resource{};
    Scope scope{};
    bool total = false;  // the limit is for the sum over devices
    std::uint64_t used = 0;
    std::uint64_t limit = 0;
    std::uint64_t requested = 0;
    bool proved = false;
};

// What a process is called in listings.
struct Identity {
    std::uint32_t pid = 0;
    std::uint32_t uid = 0;
    std::uint64_t start_time = 0;
    std::string comm;
    std::uint64_t pid_namespace = 0;  // its inode number; 0: not known
};
Identity identity_of_self();

struct LedgerDevice {
    std::uint32_t index;
    std::string identity;  // see Ledger::device_index
    std::string name;      // of the RDMA device when it was last opened
    bool operator==(const LedgerDevice&) const = default;
};

struct OwnerView {
    std::uint32_t slot;
    Identity identity;
    bool in_flight;
};

// Which event a reader wants next. Denials and repairs are numbered apart, each from 0.
struct EventCursor {
    std::uint64_t denials = 0;
    std::uint64_t repairs = 0;
    bool operator==(const EventCursor&) const = default;
};
using NumberedEvents = std::vector<std::pair<std::uint64_t, Event>>;
void sort_by_time(NumberedEvents& events);

class Ledger;
class LockFile;

// One claimed slot: the lifetime of the mapping that holds its lock. Move-only. Charge with it only while the Ledger that
// gave it is there, or what that one was moved to.
class Owner {
public:
    Owner(Owner&& other) noexcept;
    Owner& operator=(Owner&& other) noexcept;
    Owner(const Owner&) = delete;
    // Drops the lock. The slot stays marked live with its usage, as after a crash; use
    // Ledger::retire for an orderly end.
    ~Owner();

    std::uint32_t slot() const noexcept { return slot_; }

private:
    friend class Ledger;
    Owner(std::uint32_t slot, void* hold, LedgerData& data) noexcept
        : slot_(slot), hold_(hold), ops_(&data.slots[slot].ops), usage_(&data.usage[0][slot]) {}
    std::uint32_t slot_ = 0;
    void* hold_ = nullptr;
    // In the mapping of the Ledger that gave the slot, so that a charge need not calculate them: the ops word, and the
    // row of device 0.
    std::uint64_t* ops_ = nullptr;
    CellRow* usage_ = nullptr;
};

class Ledger {
public:
    // Makes the ledger directory `path` (the parent must exist): built under a temporary name and
    // renamed into place. When another process was faster, its ledger stays and this succeeds.
    static Result<void> create(const std::string& path, const LedgerAccess& access);

    // Replaces any ledger, good or not, by a new one in one step; programs that have the old one mapped go on
    // with it. The new one has the rights of the old one, or `otherwise` where the old one has no file to copy them
    // from. Returns the path to which the old one was moved.
    static Result<std::string> replace(const std::string& path,
                                       const LedgerAccess& otherwise = LedgerAccess::everyone());

    // Gives back the room that a member of the tenant took by making the ledger's files longer. For root, at any time:
    // no program uses what is cut off.
    static void cut_growth(const std::string& path) noexcept;

    // Deletes a ledger that was moved aside.
    static void remove(const std::string& aside) noexcept;

    // Creates the ledger directory `path` where there is none, and replaces one that is not usable, as `replace` does.
    // Returns the path to which that one was moved, else the empty string.
    static Result<std::string> replace_unusable(const std::string& path, const LedgerAccess& access);

    // Maps the ledger in directory `path`. Refuses what is truncated, foreign or of another layout
    // version, with path and remedy in the message.
    static Result<Ledger> open(const std::string& path);

    // False when the directory was moved away: the lock files at the path are another ledger's then and
    // say nothing about this one's owners. Nobody is taken for dead, and no denial is proved.
    bool in_place() const noexcept;

    // Its file was cut short: nothing that is charged or read here since means anything.
    bool lost() const noexcept { return mapping_.lost(); }

    // Whether the file that is in place, this ledger's, was cut short or its beginning overwritten. Needs no
    // descriptor.
    bool damaged() const;

    // Takes a free slot for this process, reaping the dead when the table is full.
    Result<Owner> claim(const Identity& identity);

    // The slot that this process has already, by another copy of this library (dlmopen(3)), else a free one as `claim` takes it: a
    // process has one slot in a ledger, so that its limits hold for all of it. For the copy's first claim.
    Result<Owner> join(const Identity& identity);

    // Uncharges everything the owner still uses and frees its slot; when a forked child has it too,
    // that happens at the child's end.
    void retire(Owner& owner) noexcept;

    // The index of a device or port in this ledger, entered when new; none when all 64 are taken. `identity` does not
    // change while the device exists: the name of its uverbs device ("uverbs0", "uverbs0/1" for a port). `name` is the RDMA
    // device's, which an administrator may change; empty: the identity. Ports are in no sum over devices.
    std::optional<std::uint32_t> device_index(std::string_view identity, std::string_view name = {}) noexcept;

    // All or nothing. `limits` has one entry per amount. nullopt: charged.
    std::optional<Denial> charge(const Owner& owner, std::uint32_t device, const Amounts& amounts,
                                 const Limits* limits) noexcept {
        Denial denial;
        if (charge_at_once(owner, device, amounts, limits, denial)) [[likely]]
            return std::nullopt;
        return charge_by_proof(owner, device, amounts, limits, denial);
    }

    // The two steps of `charge`. The first makes no system call and says in `denial` why it charged nothing. The second
    // goes on from there: it opens files and may wait.
    bool charge_at_once(const Owner& owner, std::uint32_t device, const Amounts& amounts, const Limits* limits,
                        Denial& denial) noexcept {
        return try_charge(owner.slot(), device, amounts, limits, denial);
    }
    std::optional<Denial> charge_by_proof(const Owner& owner, std::uint32_t device, const Amounts& amounts,
                                          const Limits* limits, const Denial& denial) noexcept {
        return prove(owner.slot(), device, amounts, limits, denial);
    }

    void uncharge(const Owner& owner, std::uint32_t device, const Amounts& amounts) noexcept;
    // Uncharges what was charged and never created, so that it is in no peak.
    void give_back(const Owner& owner, std::uint32_t device, const Amounts& amounts) noexcept;

    // The same for resources that are known at compile time, each a Part (shm/ledger/steps.hpp): all or nothing,
    // and false, without a reason, when there is no room. `limits_of` tells the limits of a resource.
    template <class LimitsOf, class... Parts>
    bool charge_parts(const Owner& owner, std::uint32_t device, const LimitsOf& limits_of,
                      const Parts&... parts) noexcept;
    template <class... Parts>
    void uncharge_parts(const Owner& owner, std::uint32_t device, const Parts&... parts) noexcept;
    template <class... Parts>
    void give_back_parts(const Owner& owner, std::uint32_t device, const Parts&... parts) noexcept;

    // How much more of `resource` the owner can charge, without proof; `unlimited` where no limit holds.
    std::uint64_t room(const Owner& owner, std::uint32_t device, Resource resource,
                       const Limits& limits) const noexcept;

    // The words of a soft limit and of a share (shm/ledger/layout.hpp). Anyone who may charge can write them.
    std::uint64_t& soft_since(std::uint32_t device, Resource resource) noexcept {
        return data_->soft_since[device][index(resource)];
    }
    std::uint64_t& demand(std::uint32_t device, Resource resource) noexcept {
        return data_->demand[device][index(resource)];
    }

    // The word of a rate: of the tenant or of the owner, on the device or over all devices.
    std::uint64_t& rate_word(const Owner& owner, std::uint32_t device, Resource rate, Scope scope, bool total) noexcept {
        if (total) return (scope == Scope::process ? data_->slots[owner.slot()].total_rates : data_->header.total_rates)[rate_index(rate)];
        return (scope == Scope::process ? owner.usage_[std::size_t{device} * owner_slots] : data_->gates[device])[index(rate)];
    }
    // How often a rate delayed calls on the device, and for how long in all.
    struct Delays {
        std::uint64_t calls, ns;
    };
    void note_delay(std::uint32_t device, Resource rate, std::uint64_t ns) noexcept;
    Delays delays(std::uint32_t device, Resource rate) const noexcept;

    // Counts activity of the owner: a completion event, or a QP that modify_qp moved (or failed to move) to
    // `state`, numbered as enum ibv_qp_state; other numbers are not counted. Writes the owner's words only.
    void count_cq_event(const Owner& owner, std::uint32_t device) noexcept;
    void count_qp_change(const Owner& owner, std::uint32_t device, unsigned state, bool failed) noexcept;

    // Uncharges what dead owners held. Returns how many slots were freed. A member of the tenant can make it long, by locks of its
    // own in the lock files: it ends after `most_ns`, and the next call goes on there.
    unsigned reap(std::uint64_t most_ns = UINT64_MAX) noexcept;

    enum class View : std::uint8_t { exact, corrected, not_quiescent };
    // Corrects the gate when the slots can be seen at rest.
    View reconcile(std::uint32_t device, Resource resource) noexcept;

    // Returns the event's number in its ring. Sequence, count and times are filled in.
    std::uint64_t record(const Event& event) noexcept;
    // Counts a denial alike on event `number` of this ledger instead of recording it anew, with the time and the amounts of
    // this one. False where the ring holds another event there by now, or one that is not alike: of another kind, process,
    // device, resource, scope, reason or error.
    bool repeat(std::uint64_t number, const Event& event) noexcept;
    // Whole events from `cursor` on with their numbers, sorted by time; moves the cursor past them. The rings hold the
    // last 1,024 denials and the last 256 repairs.
    NumberedEvents events(EventCursor& cursor) const;
    NumberedEvents events() const;               // all that the rings hold
    EventCursor event_cursor() const noexcept;  // past the last event

    // Views for listings: a moment's reading, each word by itself.
    std::vector<LedgerDevice> devices() const;
    std::vector<OwnerView> owners() const;
    // The last owner of each slot that was ever claimed, by the slot's number; the owner may have ended.
    std::vector<SlotOwner> last_owners() const;
    std::uint64_t usage(std::uint32_t slot, std::uint32_t device, Resource resource) const noexcept;
    std::uint64_t tenant_usage(std::uint32_t device, Resource resource) const noexcept;  // sum over slots
    std::uint64_t gate(std::uint32_t device, Resource resource) const noexcept;
    std::uint64_t peak(std::uint32_t device, Resource resource) const noexcept;

    PastActivity activity(std::uint32_t slot, std::uint32_t device) const noexcept;
    PastActivity tenant_activity(std::uint32_t device) const noexcept;  // of all owners, ended ones included

    const std::string& path() const noexcept { return path_; }
    LedgerData& data() noexcept { return *data_; }  // for tests and repair tools

private:
    using SlotSet = std::uint64_t[owner_slots / 64];  // a bit for each slot

    // The usage of one resource in all slots at one instant.
    struct Snapshot {
        std::uint64_t used[device_slots];  // sum over the slots, per device
        std::uint64_t gate[device_slots];  // gate words, tag included
        SlotSet live;                      // slots that are taken
        SlotSet holders;                   // slots that use any of it
        std::uint64_t claims;              // claims so far
    };

    Ledger(std::string path, Mapping mapping) noexcept;

    std::uint32_t slots_used() const noexcept;
    std::uint32_t devices_used() const noexcept;
    bool in_sums(std::uint32_t device) const noexcept;
    bool try_claim(std::uint32_t slot, const Identity& identity, std::optional<Owner>& owner) noexcept;

    std::optional<FullLimit> full_limit(std::uint32_t slot, std::uint32_t device, Resource, std::uint64_t amount,
                                        const Limits&) const noexcept;
    std::optional<FullLimit> full_total(std::uint32_t slot, Resource, std::uint64_t amount, const Limits&,
                                        std::uint64_t already) const noexcept;
    // The words that an operation of one owner on one device changes, found once for all its resources.
    struct Cells {
        CellRow& gates;
        CellRow& peaks;
        CellRow& usage;
    };
    Cells cells(std::uint32_t slot, std::uint32_t device) const noexcept {
        return {data_->gates[device], data_->peaks[device], data_->usage[device][slot]};
    }

    Cells cells(const Owner& owner, std::uint32_t device) const noexcept {
        return {data_->gates[device], data_->peaks[device], owner.usage_[std::size_t{device} * owner_slots]};
    }

    template <class AnyLimits>
    bool raise(std::uint32_t slot, std::uint32_t device, const Cells&, Resource, std::uint64_t amount,
               const AnyLimits&, FullLimit& met) noexcept;
    bool fits_sums(std::uint32_t slot, std::uint32_t device, Resource, std::uint64_t amount, const Limits&,
                   std::uint64_t used, FullLimit& met) noexcept;
    bool try_charge(std::uint32_t slot, std::uint32_t device, const Amounts&, const Limits*, Denial&) noexcept;
    bool retry(std::uint32_t slot, std::uint32_t device, const Amounts&, const Limits*, Denial&) noexcept;
    std::optional<Denial> prove(std::uint32_t slot, std::uint32_t device, const Amounts&, const Limits*,
                                Denial) noexcept;
    static void note_peak(const Cells&, Resource) noexcept;
    static void lower(const Cells&, Resource, std::uint64_t amount) noexcept;
    std::uint64_t gate_total(Resource) const noexcept;
    std::uint64_t slot_total(std::uint32_t slot, Resource) const noexcept;

    std::uint64_t usage_behind(std::uint32_t device, const Denial&, const Snapshot&) noexcept;
    bool proves(std::uint32_t device, Denial&) noexcept;
    bool own_usage_proves(std::uint32_t slot, std::uint32_t device, Denial&) const noexcept;
    bool observe_among_others(Resource, Snapshot&) noexcept;
    bool observe(Resource, Snapshot&) const noexcept;
    void find_live(std::uint32_t slots, SlotSet&) const noexcept;
    void add_up(std::uint32_t device, Resource, Snapshot&) const noexcept;
    bool correct(std::uint32_t device, Resource, const Snapshot&) noexcept;
    std::uint64_t live_in(std::uint32_t group) const noexcept;
    std::uint64_t find_dead(const LockFile&, std::uint32_t group, std::uint64_t slots) const noexcept;
    unsigned reap_slots(const LockFile&, std::uint32_t group, std::uint64_t slots) noexcept;
    unsigned reap_group(std::uint32_t group) noexcept;
    bool all_alive(const Snapshot&) noexcept;
    bool reap_slot(const LockFile&, std::uint32_t slot, bool report) noexcept;
    void report_death(std::uint32_t slot) noexcept;
    void empty_slot(std::uint32_t slot) noexcept;
    void keep_activity(std::uint32_t slot) noexcept;

    std::string path_;
    Mapping mapping_;
    LedgerData* data_ = nullptr;  // in the mapping
};

}  // namespace rdmaquota
