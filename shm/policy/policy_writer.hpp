// Changes of the running policy, by root: `rdmaquota set` and `reload`, and the sidecar. One writer at a time, see
// shm/policy/policy_lock.hpp; readers never wait.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "policy/limit.hpp"
#include "policy/result.hpp"
#include "shm/policy/policy_lock.hpp"
#include "shm/policy/policy_segment.hpp"

namespace rdmaquota {

// The policy at a path, opened for changes. Holds the lock while it lives, so what it reads and then writes
// is one change to all other writers, and no new policy takes the file's place meanwhile. Keep it briefly.
class PolicyWriter {
public:
    static Result<PolicyWriter> open(const std::string& path,
                                     std::chrono::milliseconds patience = PolicyLock::default_patience);

    // Compiles `policy` and renames it over `path`; the file that was there becomes superseded. Takes the lock.
    // Needs write permission on the directory.
    static Result<void> publish(const std::string& path, const Policy& policy);
    // The same for a caller that holds the lock of `path`.
    static Result<void> publish(const PolicyLock&, const std::string& path, const Policy& policy);

    const PolicySegment& policy() const noexcept { return policy_; }

    // Changes limits of one device, which may become `unset`; all of them, or none and an error: when the name is no
    // device's or all rows are taken. Programs see the change at their next charge.
    Result<void> set(Scope scope, std::string_view device, std::span<const Setting> settings);
    Result<void> set(Scope scope, std::string_view device, Resource resource, std::uint64_t limit);

    // Notes that an administrator set the limit, for the sidecar, which may have set the same value itself. Does
    // nothing where the device has no row.
    void note_set(Scope scope, std::string_view device, Resource resource) noexcept;
    // Forgets the note; true when there was one.
    bool take_note(Scope scope, std::string_view device, Resource resource) noexcept;

private:
    // Marks the file that was replaced last as superseded, if the process that replaced it was killed before it did.
    static void complete_replacement(const std::string& path);
    PolicyWriter(PolicyLock lock, PolicySegment policy) noexcept : lock_(std::move(lock)), policy_(std::move(policy)) {}
    PolicyImage& image() noexcept { return *static_cast<PolicyImage*>(policy_.mapping_.address()); }
    std::uint64_t* notes(Scope scope, std::string_view device) noexcept;

    PolicyLock lock_;
    PolicySegment policy_;
};

}  // namespace rdmaquota
