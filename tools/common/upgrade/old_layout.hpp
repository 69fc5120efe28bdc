// The shared files of the rdmaquota before tenants: compiled policy of layout 3, ledger of layout 2. Programs that
// loaded that provider use them until they end. Data only; the numbers never change any more.
//
//   DIR/policy              the compiled policy
//   DIR/policy.lock         locked while the policy is changed, as PolicyLock does
//   DIR/policy.tmp, .old    the next and the previous policy while one replaces the other
//   DIR/changed.json        what the sidecar remembered of limits that it changed
//   DIR/default/ledger      the ledger; its data begin at byte 4096 of the file
//   DIR/default/owners/NN   its lock files, 64 owners each (shm/lock_file.hpp)
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <fmt/core.h>

#include "policy/policy.hpp"
#include "policy/resource.hpp"

namespace rdmaquota::upgrade {

inline std::string old_policy_path(const std::string& directory) { return directory + "/policy"; }
inline std::string old_ledger_path(const std::string& directory) { return directory + "/default"; }
inline std::string old_data_path(const std::string& directory) { return directory + "/default/ledger"; }
inline std::string old_lock_path(const std::string& directory, std::uint32_t group) {
    return fmt::format("{}/default/owners/{:02}", directory, group);
}

// --- the policy

inline constexpr std::uint64_t old_policy_magic = 0x31594c50'51414d52;  // "RMAQPLY1", little-endian
inline constexpr std::uint32_t old_policy_layout = 3;
inline constexpr std::size_t old_resource_slots = 24;
inline constexpr std::size_t old_policy_rows = 34;  // of a scope: 32 devices and ports, "*" and "total"
inline constexpr std::uint64_t old_lost_generation = UINT64_MAX;

struct OldRow {
    char device[64];  // NUL-terminated; empty: this and later rows are unused
    std::uint64_t limits[old_resource_slots];
};
static_assert(sizeof(OldRow) == 256);

struct OldPolicyImage {
    std::uint64_t magic;
    std::uint32_t layout_version;
    std::uint32_t file_bytes;
    std::uint64_t generation;
    std::uint32_t superseded;
    std::uint32_t mode;
    std::uint32_t on_unavailable;
    std::uint32_t deny_errno;
    std::uint32_t log_level;
    std::uint32_t log_target;
    char log_file[256];
    std::uint32_t clamp_device_attr;
    std::uint32_t reserved0;
    std::uint64_t id;
    OldRow process[old_policy_rows];
    OldRow tenant[old_policy_rows];
    unsigned char sidecar[8456];  // [sidecar] and [[dynamic]], for the old sidecar only
};
static_assert(offsetof(OldPolicyImage, generation) == 16);
static_assert(offsetof(OldPolicyImage, superseded) == 24);
static_assert(offsetof(OldPolicyImage, mode) == 28);
static_assert(offsetof(OldPolicyImage, process) == 320);
static_assert(offsetof(OldPolicyImage, tenant) == 9024);
static_assert(offsetof(OldPolicyImage, sidecar) == 17728);
static_assert(sizeof(OldPolicyImage) == 26184);

// --- the ledger

inline constexpr std::uint64_t old_ledger_magic = 0x31524744'51414d52;  // "RMAQDGR1", little-endian
inline constexpr std::uint32_t old_ledger_layout = 2;
inline constexpr std::size_t old_ledger_offset = 4096;  // of the data in the file
inline constexpr std::uint32_t old_device_slots = 32;
inline constexpr std::uint32_t old_owner_slots = 4096;
inline constexpr std::uint32_t old_owners_per_lock_file = 64;
inline constexpr std::uint64_t old_gate_amount = (std::uint64_t{1} << 52) - 1;  // a tag is above it
inline constexpr std::uint32_t old_slot_live = 1;

using OldCells = std::uint64_t[old_resource_slots];

struct OldLedgerHeader {
    std::uint64_t magic;
    std::uint32_t layout_version;
    std::uint32_t header_bytes;
    std::uint64_t total_bytes;
    std::uint32_t device_slots;
    std::uint32_t owner_slots;
    std::uint32_t resource_slots;
    std::uint32_t event_slots;
    std::uint64_t slots_used;  // one more than the highest owner slot ever claimed
    std::uint64_t reserved[506];
};
static_assert(offsetof(OldLedgerHeader, slots_used) == 40);
static_assert(sizeof(OldLedgerHeader) == 4096);

struct OldDeviceEntry {
    std::uint64_t key;  // 0: this and later entries are unused
    char name[64];
    std::uint64_t reserved[7];
};
static_assert(sizeof(OldDeviceEntry) == 128);

struct OldSlot {
    std::uint64_t ops;
    std::uint32_t pid;
    std::uint32_t reserved0;
    std::uint64_t start_time;
    std::uint32_t uid;
    std::uint32_t claims;
    char comm[16];
    std::uint64_t reserved[2];
    OldCells usage[old_device_slots];
};
static_assert(offsetof(OldSlot, comm) == 32);
static_assert(offsetof(OldSlot, usage) == 64);
static_assert(sizeof(OldSlot) == 6208);

struct OldLedgerData {
    OldLedgerHeader header;
    OldDeviceEntry devices[old_device_slots];
    OldCells gates[old_device_slots];
    OldCells peaks[old_device_slots];
    unsigned char events[1024 * 192];
    std::uint32_t states[old_owner_slots];
    OldSlot slots[old_owner_slots];
};
static_assert(offsetof(OldLedgerData, devices) == 4096);
static_assert(offsetof(OldLedgerData, gates) == 8192);
static_assert(offsetof(OldLedgerData, peaks) == 14336);
static_assert(offsetof(OldLedgerData, events) == 20480);
static_assert(offsetof(OldLedgerData, states) == 217088);
static_assert(offsetof(OldLedgerData, slots) == 233472);
static_assert(sizeof(OldLedgerData) == 25661440);

}  // namespace rdmaquota::upgrade
