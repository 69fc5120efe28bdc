#include "tools/common/guard/kept_guard.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shm/paths.hpp"
#include "shm/policy/node_policy.hpp"
#include "tools/common/control_client.hpp"
#include "tools/common/devices.hpp"
#include "tools/common/guard/bpf_map.hpp"
#include "tools/common/guard/guard_pins.hpp"
#include "tools/common/guard/guard_rows.hpp"
#include "tools/common/guard/guard_turn.hpp"
#include "tools/common/guard/guard_who.hpp"
#include "tools/common/limits/percentages.hpp"
#include "tools/common/views/json.hpp"
#include "tools/common/tenants/limited_tenants.hpp"

namespace rdmaquota {
namespace {

// The maps of one directory that the kernel keeps.
struct KeptMaps {
    explicit KeptMaps(const std::string& directory) {
        const auto open = [&](const char* name) { return bpf::open_pinned(directory + "/" + GuardPins::map(name)); };
        rows_fd = open("rows");
        names = open("names");
        stamps = open("stamps");
        error = errno;
        if (!fits()) return;
        void* mapped = mmap(nullptr, rows_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, rows_fd, 0);
        if (mapped != MAP_FAILED) rows = static_cast<guard_row*>(mapped);
        else error = errno;
    }
    KeptMaps(const KeptMaps&) = delete;
    ~KeptMaps() {
        if (rows) munmap(rows, rows_bytes);
        for (const int fd : {rows_fd, names, stamps})
            if (fd >= 0) close(fd);
    }
    // Another version's may have another form.
    bool fits() const {
        return bpf::sizes(rows_fd) == bpf::Sizes{sizeof(u32), rows_bytes, 1} &&
               bpf::sizes(names) == bpf::Sizes{sizeof(guard_name), sizeof(u32), guard_rows} &&
               bpf::sizes(stamps).value == sizeof(guard_stamp) && bpf::sizes(stamps).key == sizeof(guard_who);
    }

    static constexpr std::size_t rows_bytes = guard_rows * sizeof(guard_row);
    int rows_fd, names, stamps, error = 0;
    guard_row* rows = nullptr;
};

void know(const KeptMaps& maps, const guard_who& who, const std::optional<guard_stamp>& stamp) {
    if (stamp) bpf::put_other(maps.stamps, &who, &*stamp, sizeof *stamp);
}

// A bound cgroup is known before anybody runs in it. Who is not known counts as `default` once the sidecar is gone for a while.
void introduce(const KeptMaps& maps, const GuardRows& rows, const std::string& directory, const std::vector<std::string>& devices) {
    const auto policy = NodePolicy::read(node_policy_path(directory));
    for (const auto& device : devices) {
        know(maps, {0, 0, uverbs_number(device), 0}, rows.waiting_stamp(device));
        if (policy)
            for (const auto& [cgroup, tenant] : bound_cgroups(policy->decompile()))
                know(maps, {cgroup, guard_any, uverbs_number(device), 0}, rows.stamp(tenant, device));
    }
}

// Whether a sidecar leads it is asked once nobody else has its turn: one that begins waits for that.
Result<void> lead(const std::string& pins, const std::string& directory) {
    const KeptMaps maps(pins);
    if (!maps.rows) {
        if (maps.fits() || (maps.rows_fd < 0 && maps.error != ENOENT)) return Error{fmt::format("{}: {}", pins, std::strerror(maps.error))};
        return {};
    }
    if (maps.rows[0].process != directory_mark(directory)) return {};
    const auto turn = take_turn(pins);
    const auto may = sidecar_listens(directory) ? GuardRows::May::follow : GuardRows::May::add;
    GuardRows rows(maps.rows, GuardNames(maps.names), may);
    const auto devices = UverbsDevices::now().identities();
    rows.update(LimitedTenants(directory).list(), devices);
    if (may == GuardRows::May::add) introduce(maps, rows, directory, devices);
    if (rows.without() != 0) return Error{fmt::format("the guard has no room for limits of {} more", rows.without())};
    return {};
}

}  // namespace

u64 directory_mark(const std::string& directory) {
    std::error_code error;
    const auto path = std::filesystem::weakly_canonical(directory, error);
    u64 mark = GUARD_HASH_BEGIN;
    for (const char letter : path.string()) mark = GUARD_HASH_NEXT(mark, static_cast<unsigned char>(letter));
    return GUARD_HASH_END(mark);
}

void tell_guard(const std::string& directory) {
    if (ask_sidecar(directory, Json{{"request", "grant"}}, std::chrono::seconds(1))) return;
    (void)resolve_percentages(directory);
    (void)lead_kept_guard(directory);
}

Result<void> lead_kept_guard(const std::string& directory) {
    for (const auto& pins : GuardPins::all())
        if (auto done = lead(pins, directory); !done) return done;
    return {};
}

}  // namespace rdmaquota
