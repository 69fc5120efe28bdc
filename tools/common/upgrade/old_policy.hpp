// The compiled policy of the rdmaquota before tenants, which programs with its provider follow until they end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/policy.hpp"
#include "policy/result.hpp"
#include "policy/scope.hpp"
#include "shm/mapping.hpp"
#include "shm/policy/policy_lock.hpp"
#include "tools/common/upgrade/old_layout.hpp"

namespace rdmaquota::upgrade {

// A copy, for looking only. Nothing where there is no policy of that layout.
std::optional<OldPolicyImage> read_old_policy(const std::string& directory);

// The limit that a program with the old provider is held to, and its mode.
std::uint64_t old_limit(const OldPolicyImage& image, Scope scope, std::string_view device, Resource resource) noexcept;
std::vector<std::string> old_devices(const OldPolicyImage& image);  // of the tenant's rows, in their order
Mode old_mode(const OldPolicyImage& image) noexcept;

// Opened for changes, by root. Holds the old lock while it lives. Move-only.
class OldPolicy {
public:
    // Nothing where there is no policy of that layout.
    static Result<std::optional<OldPolicy>> open(const std::string& directory);

    const OldPolicyImage& image() const noexcept { return *static_cast<OldPolicyImage*>(mapping_.address()); }
    std::vector<std::string> devices() const { return old_devices(image()); }

    // Changes a tenant's limit. False: there is no room for another device.
    bool set(std::string_view device, Resource resource, std::uint64_t limit) noexcept;
    void set_mode(Mode mode) noexcept;
    // Programs see all changes at their next charge. What is charged by the limits from before is in the ledger's gates
    // once this returns, or is backed out.
    void publish_changes() noexcept;
    // Tells those that mapped the policy to look at the path again.
    void supersede() noexcept;

private:
    OldPolicy(PolicyLock lock, Mapping mapping) noexcept : lock_(std::move(lock)), mapping_(std::move(mapping)) {}
    OldPolicyImage& writable() noexcept { return *static_cast<OldPolicyImage*>(mapping_.address()); }
    PolicyLock lock_;
    Mapping mapping_;
};

}  // namespace rdmaquota::upgrade
