// A node whose policy is published in a directory of its own, with two users and two groups.
#pragma once

#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>
#include <sys/types.h>

#include "shm/policy/node_policy.hpp"
#include "test/unit/temporary_directory.hpp"

namespace rdmaquota {

constexpr uid_t alice = 1000, bob = 1001;
constexpr gid_t atlas = 2000, users = 100;

inline NameLookup names() {
    return {[](const std::string& name) -> std::optional<uid_t> {
                if (name == "alice") return alice;
                return name == "bob" ? std::optional(bob) : std::nullopt;
            },
            [](const std::string& name) -> std::optional<gid_t> {
                if (name == "atlas") return atlas;
                return name == "users" ? std::optional(users) : std::nullopt;
            }};
}

inline Match by_user(std::string name) {
    return {.user = std::move(name), .group = {}, .cgroup = {}, .unit = {}, .members = {}};
}
inline Match by_group(std::string name) {
    return {.user = {}, .group = std::move(name), .cgroup = {}, .unit = {}, .members = {}};
}
inline Match by_cgroup(std::string pattern, std::vector<std::string> members = {}) {
    return {.user = {}, .group = {}, .cgroup = std::move(pattern), .unit = {}, .members = std::move(members)};
}
inline Match by_unit(std::string pattern) {
    return {.user = {}, .group = {}, .cgroup = {}, .unit = std::move(pattern), .members = {}};
}

struct Node {
    TemporaryDirectory directory;
    std::string path = directory / "policy";

    Result<void> try_publish(const Policy& policy) const {
        const auto lock = PolicyLock::take(path);
        if (!lock) return Error{lock.error()};
        return publish_node_policy(*lock, path, policy, names());
    }
    NodePolicy publish(const Policy& policy) const {
        const auto published = try_publish(policy);
        REQUIRE(published);
        auto read = NodePolicy::read(path);
        REQUIRE(read);
        return std::move(*read);
    }
    std::string bytes() const {
        std::ostringstream text;
        text << std::ifstream(path, std::ios::binary).rdbuf();
        return text.str();
    }
    void write(const std::string& bytes) const { std::ofstream(path, std::ios::binary) << bytes; }
};

inline Policy with(std::string tenant, std::vector<Match> matches) {
    Policy policy;
    policy.tenant(tenant).matches = std::move(matches);
    return policy;
}

inline Subject subject(std::optional<uid_t> user, std::optional<gid_t> group = {}, std::string_view cgroup = {}) {
    return {user, group, {}, cgroup};
}

inline std::string tenant_of(const NodePolicy& policy, const Subject& subject) { return policy.find(subject).tenant; }

}  // namespace rdmaquota
