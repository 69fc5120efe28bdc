// Says whose the devices are that processes open. Those who run when the guard begins are told to it before they open one;
// for others it asks. One thread.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tools/rdmaquotad/core/node.hpp"
#include "tools/common/guard/guard_rows.hpp"
#include "tools/rdmaquotad/kernel/guard_program.hpp"

namespace rdmaquota {

class GuardOwners {
public:
    GuardOwners(const Node& node, GuardProgram& program, const GuardRows& rows);

    // Matches, tenants or devices are others: tells anew whose all are that run now.
    void introduce_all(const std::vector<std::string>& devices);
    // Settles all that wait. One on a device that has no rows yet waits for the next call.
    void settle();

private:
    static constexpr std::size_t most_greedy = 4096;

    void introduce(std::uint32_t pid, const std::vector<std::string>& devices);
    void introduce_bound(const std::vector<std::string>& devices);
    void settle(const guard_file& file, const kernel_use& opener);
    static bool is_opener(const guard_file& file);
    void know(const guard_who& who, const guard_stamp& stamp);
    bool knows_cgroups() const;
    bool knows_ids() const;

    const Node& node_;
    GuardProgram& program_;
    const GuardRows& rows_;
    std::set<std::string> told_;    // of the last introduction
    std::set<std::string> greedy_;  // users who made too much while they were not known
};

}  // namespace rdmaquota
