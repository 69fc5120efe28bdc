// The devices that a tenant's programs do not list (`devices` in the policy).
#pragma once

#include "policy/uverbs.hpp"

namespace rdmaquota::provider {

// Whether the node's policy puts this process, at this moment, into a tenant that hides the device. False where that cannot be told.
bool is_hidden(DeviceKey device) noexcept;

}  // namespace rdmaquota::provider
