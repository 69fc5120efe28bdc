// A copy of what a ledger says, for a process that looks at it often: the sidecar.
//
// It is read by pread(2), never through a mapping. A mapped read of a hole in the file makes tmpfs allocate the page,
// so that whoever may charge could let the reader fill the node's memory with a sparse ledger. A copy is also the same
// in every place that looks at it, and adding it up once serves all of them.
//
// Each word is a moment's reading, as in the listings of Ledger. Nothing in it can be trusted: every index is checked,
// and amounts are cut to max_amount. A copy takes 68 bytes for each owner slot up to the highest that was ever claimed,
// and 192 more for each device in use (256 with activity): 65 MiB at most. Stretches of 64 slots of which none is taken
// are not read.
//
// One thread. The memory is kept from one `read` to the next.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "policy/result.hpp"
#include "shm/ledger/layout.hpp"
#include "shm/ledger/ledger.hpp"

namespace rdmaquota {

class LedgerCopy {
public:
    enum class Parts : std::uint8_t { usage, usage_and_activity };

    LedgerCopy();

    // Copies the ledger in directory `path`. After an error, and before the first call, the copy is of an empty ledger.
    Result<void> read(const std::string& path, Parts parts = Parts::usage);

    ino_t inode() const noexcept { return inode_; }  // of the file that was read last; 0: none
    // How many slots were ever claimed: another number may mean another owner of any slot.
    std::uint64_t claims() const noexcept { return head_->header.claims; }

    // As the functions of Ledger that have these names.
    std::vector<LedgerDevice> devices() const;
    std::vector<OwnerView> owners() const;
    std::uint64_t usage(std::uint32_t slot, std::uint32_t device, Resource resource) const noexcept;
    std::uint64_t tenant_usage(std::uint32_t device, Resource resource) const noexcept;
    std::uint64_t gate(std::uint32_t device, Resource resource) const noexcept;
    std::uint64_t peak(std::uint32_t device, Resource resource) const noexcept;
    std::uint64_t soft_since(std::uint32_t device, Resource resource) const noexcept;
    Ledger::Delays delays(std::uint32_t device, Resource rate) const noexcept;

    // 0 where activity was not read.
    PastActivity activity(std::uint32_t slot, std::uint32_t device) const noexcept;
    PastActivity tenant_activity(std::uint32_t device) const noexcept;

private:
    // The beginning of the ledger, up to its events.
    struct Head {
        LedgerHeader header;
        DeviceEntry devices[device_slots];
        CellRow gates[device_slots];
        CellRow peaks[device_slots];
        CellRow soft_since[device_slots];
        CellRow demand[device_slots];
    };
    static_assert(sizeof(Head) == offsetof(LedgerData, events));
    struct Cells {
        CellRow of;
    };

    void clear();
    void read_slots(int fd, Parts parts);
    template <class Visit>
    void for_each_stretch(Visit visit) const;
    template <class Row>
    void read_rows(int fd, std::size_t offset, std::vector<Row>& rows);
    void add_up();
    // Where the row of a slot and a device is in usage_ and activity_.
    std::size_t row(std::uint32_t slot, std::uint32_t device) const noexcept {
        return std::size_t{device} * slots_used_ + slot;
    }
    bool live(std::uint32_t slot) const noexcept { return slot < slots_used_ && states_[slot] == SlotState::live; }

    ino_t inode_ = 0;
    std::uint32_t slots_used_ = 0, devices_used_ = 0;
    std::unique_ptr<Head> head_;
    std::vector<SlotState> states_;
    std::vector<Slot> slots_;  // here and in the next two, what is not live holds anything
    std::vector<Cells> usage_;
    std::vector<Activity> activity_;
    std::vector<PastActivity> past_activity_;
    std::vector<std::uint64_t> sums_;  // usage of all live slots, by device and resource
};

// Whole events of the ledger in directory `path` from `cursor` on, as Ledger::events; read by pread, too.
NumberedEvents read_events(const std::string& path, EventCursor& cursor);

}  // namespace rdmaquota
