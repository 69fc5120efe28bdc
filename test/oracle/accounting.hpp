// The accounts of one device side by side: the ledger's, the kernel's, the oracle's own, and what the sidecar sees of
// the kernel where that is built (ORACLE_SIDECAR).
#pragma once

#include <map>
#include <string>

#include "shm/ledger/ledger.hpp"
#include "shm/policy/limits_writer.hpp"
#include "tally.hpp"
#ifdef ORACLE_SIDECAR
#include "guard_account.hpp"
#include "tools/rdmaquotad/kernel/kernel_watch.hpp"
#endif

namespace oracle {

class Accounting {
public:
    // `with_kernel`: the device is the kernel's, and this process is in a cgroup of its own. What the
    // kernel has on the device for itself now is not counted later. `new_sidecar`: each so manyth comparison sees
    // the kernel as a sidecar that was just started; 0: never.
    // `guard`: a sidecar runs with the guard, whose account must agree too whenever it answers.
    Accounting(std::string device, bool with_kernel, unsigned new_sidecar, bool guard = false);

    // Where the accounts of this device disagree, at a moment when nothing changes; empty when they do
    // not. `expected` is the sum over all processes.
    std::string disagreement(const Tally& expected);
    // The same, with time for what a killed process had to be cleaned up.
    std::string lasting_disagreement(const Tally& expected);

    // A random limit for a random resource, or no limits at all. `floor` is what is used now; a limit
    // for the sums over processes is never below it.
    void limit_at_random(Random& random, const Tally& floor);
    void lift_limits();
    // From now on some objects were made by threads that have ended, which netlink does not list.
    void expect_ended_threads() { all_listed_ = false; }
    void set_tenant_limit(Resource resource, std::uint64_t limit);

    // Whether some limit has no room for `more` on top of `used` (by one process alone).
    bool exceeds(const Tally& used, const Tally& more) const;
    std::string limits() const;  // those that are set, as text
    unsigned guard_answers() const;

private:
    using Row = std::array<std::uint64_t, resource_count>;
    void open_again(std::uint32_t number, const Tally& expected) const;
    void set(rdmaquota::Scope scope, std::string_view device, Row& row, Resource resource, std::uint64_t limit);
    void compare(const std::string& what, std::int64_t seen, std::int64_t expected, std::string& text) const;

    void compare_sidecar(const Tally& expected, std::string& text);
    void compare_guard(const Tally& expected, std::string& text);
    void follow_limits() const;

    std::string device_;
    bool with_kernel_, all_listed_ = true;
    unsigned new_sidecar_, comparisons_ = 0;
#ifdef ORACLE_SIDECAR
    rdmaquota::KernelWatch watch_ = rdmaquota::KernelWatch::open();  // read by forked children too
#endif
#ifdef ORACLE_SIDECAR
    std::optional<GuardAccount> guard_;
#endif
    rdmaquota::Ledger ledger_;
    std::map<std::string, std::int64_t> baseline_;
    // The model's own copy of the limits: each process and the tenant, on the device and in total.
    Row process_, tenant_, process_total_, tenant_total_;
};

}  // namespace oracle
