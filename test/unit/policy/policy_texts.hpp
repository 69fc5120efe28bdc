// Policies as texts, and what the parser says of them.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <catch2/catch.hpp>

#include "policy/file/policy_file.hpp"
#include "test/unit/temporary_directory.hpp"

namespace rdmaquota {

// Writes below `directory`, and makes the folders on the way.
inline std::string write(const TemporaryDirectory& directory, const std::string& name, const std::string& text) {
    const auto path = directory / name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path;
}

inline std::string contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

// What `text` means, called p.toml.
inline Policy good(const std::string& text) {
    auto policy = parse_policy(text, "p.toml");
    INFO((policy ? "" : policy.error()));
    REQUIRE(policy);
    return policy.value();
}

inline std::string error_of(const std::string& text) {
    const auto policy = parse_policy(text, "p.toml");
    REQUIRE_FALSE(policy);
    return policy.error();
}

inline std::uint64_t limit_in(const ScopeLimits& scope, std::string_view device, Resource resource) {
    const auto* row = find_row(scope, device);
    return row == nullptr ? unset : (*row)[index(resource)];
}

inline const ScopeLimits& default_limits(const Policy& policy) {
    return policy.find(default_tenant)->limits[index(Scope::tenant)];
}

}  // namespace rdmaquota
