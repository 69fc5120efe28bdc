// Files of the rdmaquota before tenants, and programs that charge there as its provider does.
#pragma once

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shm/atomic.hpp"
#include "shm/lock_file.hpp"
#include "shm/paths.hpp"
#include "shm/policy/limits_writer.hpp"
#include "test/unit/temporary_directory.hpp"
#include "tools/common/upgrade/old_ledger.hpp"
#include "tools/common/upgrade/old_policy.hpp"

namespace rdmaquota::upgrade {

template <class T>
T* map_new(const std::string& path, std::size_t offset) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || ftruncate(fd, static_cast<off_t>(offset + sizeof(T))) != 0) throw std::runtime_error("no " + path);
    auto* memory = static_cast<char*>(mmap(nullptr, offset + sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    close(fd);
    if (memory == MAP_FAILED) throw std::runtime_error("cannot map " + path);
    return reinterpret_cast<T*>(memory + offset);
}

struct OldNode {
    TemporaryDirectory directory;
    OldPolicyImage* policy;
    OldLedgerData* ledger;

    explicit OldNode(std::uint64_t qp_limit = 10) {
        const auto& path = directory.path();
        std::filesystem::create_directories(old_ledger_path(path) + "/owners");
        for (std::uint32_t group = 0; group < 64; ++group) std::ofstream(old_lock_path(path, group));
        std::ofstream(path + "/changed.json") << "{}";
        policy = map_new<OldPolicyImage>(old_policy_path(path), 0);
        policy->magic = old_policy_magic;
        policy->layout_version = old_policy_layout;
        policy->generation = 1;
        limit("*", Resource::qp, qp_limit);
        ledger = map_new<OldLedgerData>(old_data_path(path), old_ledger_offset);
        ledger->header.magic = old_ledger_magic;
        ledger->header.layout_version = old_ledger_layout;
    }
    ~OldNode() {
        munmap(policy, sizeof *policy);
        munmap(reinterpret_cast<char*>(ledger) - old_ledger_offset, old_ledger_offset + sizeof *ledger);
    }

    OldRow& row(const std::string& device) {
        for (auto& row : policy->tenant) {
            if (row.device == device) return row;
            if (row.device[0] != '\0') continue;
            for (auto& limit : row.limits) limit = unset;
            device.copy(row.device, sizeof row.device - 1);
            return row;
        }
        throw std::runtime_error("no row");
    }
    void limit(const std::string& device, Resource resource, std::uint64_t value) {
        row(device).limits[index(resource)] = value;
    }
    std::uint64_t limit_of(const std::string& device, Resource resource = Resource::qp) const {
        return old_limit(*policy, Scope::tenant, device, resource);
    }

    std::uint32_t device(const std::string& name) {
        for (std::uint32_t i = 0; i < old_device_slots; ++i) {
            if (ledger->devices[i].name == name) return i;
            if (ledger->devices[i].key != 0) continue;
            name.copy(ledger->devices[i].name, sizeof ledger->devices[i].name - 1);
            ledger->devices[i].key = 2 * i + 2;
            return i;
        }
        throw std::runtime_error("no device");
    }
    std::uint64_t& gate(const std::string& name, Resource resource = Resource::qp) {
        return ledger->gates[device(name)][index(resource)];
    }

    // What `default` of this version is held to.
    std::string limits() const { return limits_path(here_path(directory.path())); }
    void publish(const std::vector<std::pair<std::string, std::uint64_t>>& qp_limits, Mode mode = Mode::enforce) {
        std::filesystem::create_directories(here_path(directory.path()));
        TenantLimits wanted;
        wanted.mode = mode;
        for (const auto& [name, limit] : qp_limits)
            row_for(wanted.limits[index(Scope::tenant)], name)[index(Resource::qp)] = limit;
        if (const auto done = LimitsWriter::publish(limits(), wanted); !done) throw std::runtime_error(done.error());
    }
    LimitsSegment segment() const { return std::move(*LimitsSegment::open(limits(), LimitsSegment::Parts::all)); }
    std::uint64_t effective(const std::string& name, Resource resource = Resource::qp) const {
        return segment().limit(Scope::tenant, name, resource);
    }
    Reason reason(const std::string& name) const { return segment().reason(Scope::tenant, name, Resource::qp); }
    bool has_old_files() const {
        for (const auto* name : {"policy", "policy.lock", "policy.old", "policy.tmp", "default", "changed.json"})
            if (std::filesystem::exists(directory / name)) return true;
        return false;
    }
};

// A program in the old ledger. Its lock is dropped, as at its death, when this is destroyed.
class OldProgram {
public:
    OldProgram(OldNode& node, std::uint32_t slot)
        : node_(node),
          slot_(slot),
          lock_(std::move(*LockFile::open(old_lock_path(node.directory.path(), slot / old_owners_per_lock_file)))) {
        if (!lock_.try_reap(slot)) throw std::runtime_error("the slot is taken");
        lock_.own(slot);
        auto& of = node.ledger->slots[slot];
        of.pid = 1000 + slot;
        of.uid = 7;
        std::strcpy(of.comm, "old");
        raise_to(node.ledger->header.slots_used, slot + 1);
        store(node.ledger->states[slot], old_slot_live);
    }

    // As the old provider: raise the gate, then the slot, then see whether the limits were still those.
    bool charge(const std::string& device, Resource resource = Resource::qp, std::uint64_t amount = 1) {
        const auto at = node_.device(device);
        auto& gate = node_.ledger->gates[at][index(resource)];
        auto& used = node_.ledger->slots[slot_].usage[at][index(resource)];
        const auto generation = load(node_.policy->generation);
        const auto limit = node_.limit_of(device, resource);
        for (auto word = load(gate);;) {
            if ((word & old_gate_amount) + amount > limit) return false;
            if (compare_exchange(gate, word, word + amount)) break;
        }
        add(used, amount);
        if (load(node_.policy->generation) == generation) return true;
        uncharge(device, resource, amount);
        return false;
    }
    void uncharge(const std::string& device, Resource resource = Resource::qp, std::uint64_t amount = 1) {
        const auto at = node_.device(device);
        subtract(node_.ledger->slots[slot_].usage[at][index(resource)], amount);
        subtract(node_.ledger->gates[at][index(resource)], amount);
    }
    unsigned charge_up_to(const std::string& device, unsigned count) {
        unsigned done = 0;
        while (done < count && charge(device)) ++done;
        return done;
    }

private:
    OldNode& node_;
    std::uint32_t slot_;
    LockFile lock_;
};

}  // namespace rdmaquota::upgrade
