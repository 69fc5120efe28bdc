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
    // Makes the tenant of a template that the process belongs to, if it can be made. False: not yet, ask again.
    using MakeTenant = std::function<bool(pid_t)>;
    GuardOwners(const Node& node, GuardProgram& program, const GuardRows& rows, MakeTenant make_tenant);

    // Matches, tenants or devices are others: tells anew whose all are that run now.
    void introduce_all(const std::vector<std::string>& devices);
    // So many are known that it is time to forget those who are gone. Whoever makes cgroups or has many ids could fill the table.
    bool is_crowded() const;
    // Tells whose a thread is that has asked for a device: the next time it is known.
    void introduce(const guard_unknown& unknown);
    // Settles all files that wait. One on a device that has no rows yet waits for the next call.
    void settle();
    // Files of whoever made too much, by a way that is not looked at, while it was not known: since the last call, by index.
    std::vector<u32> take_exceeding() { return std::exchange(exceeding_, {}); }
    // What a policy may have changed for files that are open: the errno, and whether their tenants are exempt.
    void refresh();
    // Whether a tenant or device had no rows in one of these since the last call.
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
    std::map<std::string, unsigned> strange_;  // who asked in vain, since the sidecar finds somebody else there; how often
    std::vector<std::pair<u32, u64>> settled_;  // files with their ids, of which something may not have moved yet
    std::vector<u32> exceeding_;
    std::set<std::string> told_;        // since then
};

}  // namespace rdmaquota
