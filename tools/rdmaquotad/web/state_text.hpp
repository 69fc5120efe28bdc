// The figures of the page's state: tenants with their cells, and the processes that use most. See web_state.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "tools/common/views/snapshot.hpp"

namespace rdmaquota {

class StateText {
public:
    // `most`: processes of each device and resource. The views outlive this.
    StateText(const std::vector<const TenantView*>& views, std::size_t most);

    using UserName = std::function<std::string(uid_t)>;
    // Members of an object: "resources", "devices", "tenants", "top".
    std::string text(const UserName& user_name) const;

private:
    struct Use {
        std::uint64_t used;
        std::size_t tenant;
        const ProcessView* process;
    };
    std::size_t number_of(const std::string& device);
    void add_tenant(const TenantView& view);
    void add_cell(const std::string& device, const ResourceView& view);
    void add_rate(const RateView& view);
    void add_processes(const TenantView& view, std::size_t tenant, std::size_t most);
    std::string top(const UserName& user_name) const;

    std::vector<std::string> devices_;
    std::map<std::string, std::size_t> numbers_;                            // of devices
    std::map<std::pair<std::size_t, std::size_t>, std::vector<Use>> uses_;  // by device and resource, the most first
    std::string tenants_;
};

}  // namespace rdmaquota
