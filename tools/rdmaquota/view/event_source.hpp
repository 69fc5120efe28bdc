// The events of all ledgers that this user may read, of Slurm jobs, and of the sidecar where one runs.
#pragma once

#include <sys/types.h>

#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "policy/result.hpp"
#include "shm/ledger/ledger.hpp"
#include "tools/common/views/json.hpp"
#include "tools/common/tenants/slurm_jobs.hpp"
#include "tools/common/tenants/tenants.hpp"

namespace rdmaquota {

using EventsByTime = std::multimap<std::string, Json>;  // with the users' names

// The events of one tenant's ledger.
class LedgerEvents {
public:
    explicit LedgerEvents(const TenantPlace& place) : place_(place) {}
    Result<void> open();

    const std::string& key() const noexcept { return place_.key; }
    // Whether another ledger has taken the place of the one that is open. While there is none, the old one goes on.
    bool replaced() const { return inode_now() != 0 && inode_now() != inode_; }

    void add_new(EventsByTime& events);
    // Those among them that have come to stand for more denials since they were added.
    void add_repeated(EventsByTime& events);

private:
    ino_t inode_now() const;
    void add(std::uint64_t number, const Event& event, EventsByTime& events);

    TenantPlace place_;
    std::string tenant_;
    std::optional<Ledger> ledger_;
    EventCursor next_;
    std::map<std::uint64_t, std::uint64_t> counts_;  // of denials that the ring still has
    ino_t inode_ = 0;
};

class EventSource {
public:
    explicit EventSource(const std::string& directory) : directory_(directory) {}

    // Opens what is new or was replaced. An error when there is nothing to read.
    Result<void> open();
    // What came since the last call, sorted by time.
    EventsByTime take();
    // Adds older ones from the journal that the sidecar keeps, as far as this user may read it.
    void add_past(const std::string& since, EventsByTime& events) const;

private:
    Result<void> nothing() const;
    void add_jobs(EventsByTime& events);
    void add_sidecar(EventsByTime& events);

    std::string directory_;
    std::vector<LedgerEvents> ledgers_;
    JobEventCursor next_of_jobs_;
    std::uint64_t next_of_sidecar_ = 0;
    std::time_t asked_ = 0;
};

}  // namespace rdmaquota
