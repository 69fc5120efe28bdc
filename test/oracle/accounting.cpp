#include "accounting.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include <fmt/core.h>
#include <unistd.h>

#include "kernel.hpp"
#include "phases.hpp"
#include "shm/paths.hpp"
#include "test/uverbs_identity.hpp"
#include "test/waiting.hpp"

namespace oracle {
namespace {

using rdmaquota::info;
using rdmaquota::Scope;
using rdmaquota::unlimited;

template <class T>
T need(rdmaquota::Result<T> result) {
    if (result) return std::move(*result);
    std::fprintf(stderr, "oracle: %s\n", result.error().c_str());
    std::exit(2);
}

// The tenant default of the quota directory that the programs of this environment are charged to.
std::string directory() {
    const char* own = std::getenv("RDMAQUOTA_DIR");
    return rdmaquota::here_path(own ? own : rdmaquota::system_directory);
}

// What `rdma resource show` counts on the node, and the resource that is the same. Not ctx: a sidecar that begins opens the
// device for a moment, to ask for its maxima. The kernel's hca_handle counts the contexts of this cgroup.
constexpr std::pair<const char*, Resource> listed[] = {
    {"qp", Resource::qp}, {"cq", Resource::cq}, {"pd", Resource::pd}, {"mr", Resource::mr}, {"srq", Resource::srq},
};

}  // namespace

Accounting::Accounting(std::string device, bool with_kernel, unsigned new_sidecar, [[maybe_unused]] bool guard)
    : device_(std::move(device)),
      with_kernel_(with_kernel),
      new_sidecar_(new_sidecar),
      ledger_(need(rdmaquota::Ledger::open(rdmaquota::ledger_path(directory())))) {
#ifdef ORACLE_SIDECAR
    if (guard) guard_.emplace(device_);
#endif
    ledger_.reap();  // what an earlier run that was killed has left
    if (with_kernel_) baseline_ = resource_counts(device_);
    lift_limits();
}

void Accounting::compare(const std::string& what, std::int64_t seen, std::int64_t expected, std::string& text) const {
    if (seen != expected)
        text += fmt::format("{}{} is {} and should be {}", text.empty() ? "" : ", ", what, seen, expected);
}

// The file of a closed device may be open until a sidecar that begins has listed all files: the kernel ends it when that call
// returns. A process finds out at its next opening (docs/not-covered.md).
void Accounting::open_again(std::uint32_t number, const Tally& expected) const {
    const auto too_many = [&] {
        return static_cast<std::int64_t>(ledger_.tenant_usage(number, Resource::hca_handle)) > expected.of(Resource::hca_handle);
    };
    eventually([&] {
        if (!too_many()) return true;
        if (auto* context = ibv_open_device(find_device(device_))) ibv_close_device(context);
        return false;
    });
}

std::string Accounting::disagreement(const Tally& expected) {
    std::string text;
    std::optional<std::uint32_t> number;
    for (const auto& [i, identity, name] : ledger_.devices())
        if (identity == uverbs_identity_of(device_)) number = i;
    if (number) open_again(*number, expected);
    for (const auto& row : rdmaquota::resource_table) {
        const auto used = number ? ledger_.tenant_usage(*number, row.id) : 0;
        const auto gate = number ? ledger_.gate(*number, row.id) : 0;
        compare(fmt::format("the ledger's {}", row.name), static_cast<std::int64_t>(used), expected.of(row.id), text);
        compare(fmt::format("the gate of {}", row.name), static_cast<std::int64_t>(gate), expected.of(row.id), text);
    }
    if (!with_kernel_) return text;
    auto group = cgroup_counts(device_);
    compare("the kernel's hca_handle", group["hca_handle"], expected.of(Resource::hca_handle), text);
    compare("the kernel's hca_object", group["hca_object"], expected.of(Resource::hca_object), text);
    auto counts = resource_counts(device_);
    for (const auto& [name, resource] : listed)
        compare(fmt::format("the kernel's {}", name), counts[name] - baseline_[name], expected.of(resource), text);
    compare_sidecar(expected, text);
    compare_guard(expected, text);
    return text;
}

#ifdef ORACLE_SIDECAR
namespace {

// What the sidecar sees, once all of it is of now: netlink is not asked each time.
auto look_afresh(rdmaquota::KernelWatch& watch) {
    const auto stale = [](const auto& use) { return use.stale; };
    auto uses = watch.snapshot();
    eventually([&] {
        if (!uses || std::none_of(uses->begin(), uses->end(), stale)) return true;
        uses = watch.snapshot();
        return false;
    });
    return uses;
}

}  // namespace

void Accounting::compare_sidecar(const Tally& expected, std::string& text) {
    if (new_sidecar_ != 0 && ++comparisons_ % new_sidecar_ == 0) watch_ = rdmaquota::KernelWatch::open();
    const auto uses = look_afresh(watch_);
    if (!uses || !watch_.attached())
        text += fmt::format(" the sidecar sees nothing: {}", uses ? watch_.blind().front() : uses.error());
    if (!uses) return;
    // Of what was there before it was started, it knows what netlink lists.
    const bool partial = std::any_of(uses->begin(), uses->end(), [](const auto& use) { return use.partial; });
    for (const auto& row : rdmaquota::resource_table) {
        std::int64_t seen = 0;
        for (const auto& use : *uses)
            if (use.device == device_) seen += static_cast<std::int64_t>(use.live[index(row.id)]);
        if (new_sidecar_ != 0 && !all_listed_ && seen < expected.of(row.id)) continue;
        if (watch_.knows(row.id) && (!partial || rdmaquota::in_netlink(row.id)))
            compare(fmt::format("the sidecar's {}", row.name), seen, expected.of(row.id), text);
    }
}

// A sidecar that has just started needs a moment to find out whose the devices are that were open.
void Accounting::compare_guard(const Tally& expected, std::string& text) {
    std::string wrong;
    const bool agrees = eventually([&] {
        wrong.clear();
        const auto used = guard_ ? guard_->used() : std::nullopt;
        if (!used) return true;
        for (const auto& row : rdmaquota::resource_table) {
            const auto found = used->find(row.id);
            if (watch_.knows(row.id))
                compare(fmt::format("the guard's {}", row.name), found == used->end() ? 0 : found->second,
                        expected.of(row.id), wrong);
        }
        return wrong.empty();
    });
    if (!agrees) text += (text.empty() ? "" : ", ") + wrong;
}

void Accounting::follow_limits() const {
    if (guard_) guard_->follow_limits();
}
unsigned Accounting::guard_answers() const { return guard_ ? guard_->answers() : 0; }
#else
void Accounting::compare_sidecar(const Tally&, std::string&) {}
void Accounting::compare_guard(const Tally&, std::string&) {}
void Accounting::follow_limits() const {}
unsigned Accounting::guard_answers() const { return 0; }
#endif

std::string Accounting::lasting_disagreement(const Tally& expected) {
    std::string text;
    eventually([&] {
        ledger_.reap();
        for (const auto& [i, identity, name] : ledger_.devices())
            for (const auto& row : rdmaquota::resource_table) ledger_.reconcile(i, row.id);
        text = disagreement(expected);
        return text.empty();
    });
    return text;
}

void Accounting::set(Scope scope, std::string_view device, Row& row, Resource resource, std::uint64_t limit) {
    row[index(resource)] = limit;
    auto writer = need(rdmaquota::LimitsWriter::open(rdmaquota::limits_path(directory())));
    if (const auto done = writer.set(scope, device, resource, limit); !done) {
        std::fprintf(stderr, "oracle: %s\n", done.error().c_str());
        std::exit(2);
    }
}

void Accounting::lift_limits() {
    for (const auto& resource : rdmaquota::resource_table) {
        set(Scope::process, device_, process_, resource.id, unlimited);
        set(Scope::tenant, device_, tenant_, resource.id, unlimited);
        set(Scope::process, rdmaquota::total_device, process_total_, resource.id, unlimited);
        set(Scope::tenant, rdmaquota::total_device, tenant_total_, resource.id, unlimited);
    }
    follow_limits();
}

void Accounting::set_tenant_limit(Resource resource, std::uint64_t limit) {
    set(Scope::tenant, device_, tenant_, resource, limit);
    follow_limits();
}

void Accounting::limit_at_random(Random& random, const Tally& floor) {
    if (random.one_in(4)) lift_limits();
    for (int n = 0; n < 3; ++n) {
        const auto& resource = rdmaquota::resource_table[random.below(resource_count)];
        const auto used = static_cast<std::uint64_t>(floor.of(resource.id));
        const auto room =
            resource.unit == rdmaquota::Unit::bytes ? random.below(1 << 20) : random.below(4) * random.below(20);
        switch (random.below(4)) {
            case 0:
                set(Scope::process, device_, process_, resource.id, random.below(used + room + 1));
                break;
            case 1:
                set(Scope::tenant, device_, tenant_, resource.id, used + room);
                break;
            case 2:
                set(Scope::process, rdmaquota::total_device, process_total_, resource.id, used + room);
                break;
            default:
                set(Scope::tenant, rdmaquota::total_device, tenant_total_, resource.id, used + room);
        }
    }
    follow_limits();
}

bool Accounting::exceeds(const Tally& used, const Tally& more) const {
    for (std::size_t i = 0; i < resource_count; ++i) {
        const auto limit = std::min({process_[i], tenant_[i], process_total_[i], tenant_total_[i]});
        if (more.amount[i] > 0 && static_cast<std::uint64_t>(used.amount[i] + more.amount[i]) > limit) return true;
    }
    return false;
}

std::string Accounting::limits() const {
    std::string text;
    for (const auto& row : rdmaquota::resource_table) {
        const auto i = index(row.id);
        const auto limit = std::min({process_[i], tenant_[i], process_total_[i], tenant_total_[i]});
        if (limit != unlimited) text += fmt::format(" {}={}", row.name, limit);
    }
    return text;
}

}  // namespace oracle
