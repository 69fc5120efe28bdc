// The guard's account of the tenant `default`, as rdmaquotad tells it. It may be killed meanwhile: then there is none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "policy/resource.hpp"

namespace oracle {

class GuardAccount {
public:
    explicit GuardAccount(std::string device) : device_(std::move(device)) {}
    // By resource, those that are not 0; nothing when there is no sidecar that answers.
    std::optional<std::map<rdmaquota::Resource, std::int64_t>> used();
    // Limits were changed: the guard has them when this returns, if a sidecar runs.
    void follow_limits() const;
    unsigned answers() const noexcept { return *answers_; }

private:
    std::string device_;
    unsigned* answers_ = shared_count();  // of all processes
    static unsigned* shared_count();
};

}  // namespace oracle
