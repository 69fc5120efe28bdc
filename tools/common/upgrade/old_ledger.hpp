// Reads the ledger of the rdmaquota before tenants, and tells which of its owners live.
//
// Every process that may charge can write any bytes there. It is read by pread(2) only, never mapped: no index that is
// read is used unchecked, names are valid device names or left out, and amounts are cut to what a gate can hold. What
// lies behind the end of the file reads as zeroes.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/policy.hpp"
#include "policy/result.hpp"
#include "tools/common/open_file.hpp"
#include "tools/common/upgrade/old_layout.hpp"

namespace rdmaquota::upgrade {

using Amounts = std::array<std::uint64_t, resource_count>;
using UsageByDevice = std::map<std::string, Amounts, std::less<>>;

struct OldOwner {
    std::uint32_t pid;
    std::uint32_t uid;
    std::string comm;     // not yet safe to print
    UsageByDevice usage;  // devices and ports with any
};

class OldLedger {
public:
    // The error says why it cannot be read.
    static Result<OldLedger> open(const std::string& directory);

    // What is charged at present by device or port, as the gates say: never less than what is in use.
    UsageByDevice gates() const;
    UsageByDevice peaks() const;

    // Owners whose processes live. Whoever cannot be tested counts as alive.
    std::vector<OldOwner> owners() const;

    // What ended processes still have charged. While this lives no process reaps them, so that the gates hold these
    // amounts, too: gate less `usage` is in use.
    struct Dead {
        std::vector<OpenFile> locks;
        UsageByDevice usage;
    };
    Dead lock_dead() const;

private:
    OldLedger(std::string directory, OpenFile file) noexcept
        : directory_(std::move(directory)), file_(std::move(file)) {}
    UsageByDevice cells(std::size_t offset) const;
    std::vector<std::pair<std::uint32_t, std::string>> devices() const;
    template <class Visit>
    void for_each_live(Visit visit) const;
    OldOwner owner(std::uint32_t slot, const std::vector<std::pair<std::uint32_t, std::string>>& devices) const;

    std::string directory_;
    OpenFile file_;
};

// That no process is in the old ledger, and that none can join it while this lives.
struct NoOldOwners {
    std::vector<OpenFile> locks;
};

// Nothing when a process is in the ledger, or when that cannot be tested.
std::optional<NoOldOwners> lock_out_owners(const std::string& directory);

// Sums never exceed what a gate can hold.
void add_to(UsageByDevice& sum, const UsageByDevice& usage);
std::uint64_t amount_in(const UsageByDevice& usage, std::string_view device, Resource resource);
// The sum over devices, which ports are not part of.
std::uint64_t total_in(const UsageByDevice& usage, Resource resource);

}  // namespace rdmaquota::upgrade
