// Says whose the devices are that processes open. Those who run when the guard begins are told to it before they open one;
// for others it asks. One thread.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tools/common/guard/guard_rows.hpp"
#include "tools/common/tenants/subject.hpp"
#include "tools/rdmaquotad/node/node.hpp"
#include "tools/rdmaquotad/kernel/guard_program.hpp"

namespace rdmaquota {

// The process that has the file's pid is the one that opened it.
bool started_then(const guard_file& file);

class GuardOwners {
public:
    // Creates the template's tenant that the process or thread belongs to, unless that fails. False: it is still being created.
    using MakeTenant = std::function<bool(const ProcessSubject&)>;
    GuardOwners(const Node& node, GuardProgram& program, const GuardRows& rows, MakeTenant make_tenant);

    // Matches, tenants or devices are others: tells anew whose all are that run now.
    void introduce_all(const std::vector<std::string>& devices);
    // So many are known that it is time to forget those who are gone. Whoever makes cgroups or has many ids could fill the table.
    bool is_crowded() const;
    // Resolves the tenant of a thread that was refused a device; its next try succeeds.
    void introduce(const guard_unknown& unknown);
    // Settles all files that wait. One on a device that has no rows yet waits for the next call.
    void settle();
    // Files through which a process exceeded a limit by write(2) before its tenant was resolved: their indexes, since the last call.
    std::vector<u32> take_exceeding() { return std::exchange(exceeding_, {}); }
    // Gives open files the errno and the exemption of their tenants as the policy has them now.
    void refresh();
    // Whether introduce() or settle() met a tenant or device without rows since the last call.
    bool take_rows_are_missing() noexcept { return std::exchange(rows_are_missing_, false); }

private:
    static constexpr std::size_t most_told = 48 << 10;  // of 64 Ki that the program can know
    static constexpr std::chrono::seconds between_introductions{10};

    void introduce(const ProcessSubject& subject, const std::string& tenant, const std::vector<std::string>& devices);
    void introduce_bound(const std::vector<std::string>& devices);
    void settle(const guard_file& file, const kernel_use& opener);
    void judge_settled();
    bool is_exceeded(const guard_file& file) const;
    void know(const guard_who& who, const guard_stamp& stamp);
    bool knows_cgroups() const;
    bool knows_ids() const;

    const Node& node_;
    GuardProgram& program_;
    const GuardRows& rows_;
    MakeTenant make_tenant_;
    bool rows_are_missing_ = false;
    std::chrono::steady_clock::time_point introduced_;
    std::map<std::string, unsigned> failures_;  // by the opener's `guard_who`: how often the sidecar could not resolve it
    std::vector<std::pair<u32, u64>> settled_;  // files with their ids, of which something may not have moved yet
    std::vector<u32> exceeding_;
    std::set<std::string> told_;        // since then
};

}  // namespace rdmaquota
