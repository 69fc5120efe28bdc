#include "provider/charging/device_port.hpp"

#include <fmt/core.h>

#include "provider/host/log_target.hpp"

namespace rdmaquota::provider {

DevicePort::DevicePort(std::string name, std::string identity, const Accounts& accounts, DeviceReport& report)
    : name_(std::move(name)), identity_(std::move(identity)), uverbs_(uverbs_number(identity_)), report_(report) {
    const BusErrorsAllowed allowed;
    for (std::size_t i = 0; i < accounts.count; ++i) {
        auto& ledger = accounts.account[i]->ledger();
        const auto index = ledger.device_index(identity_, name_);
        usable_[i] = index.has_value();
        index_[i] = index.value_or(0);
        if (index) continue;
        const auto& policy = accounts.account[i]->policy();
        say(LogLevel::warning,
            fmt::format("the ledger has no room for device {}: it knows {} already; move {} away and "
                        "run 'rdmaquota reload' when no program uses it",
                        name_, device_slots, ledger.path()));
        if (policy.denies_uncounted()) deny_errno_ = policy.deny_errno();
    }
}

}  // namespace rdmaquota::provider
