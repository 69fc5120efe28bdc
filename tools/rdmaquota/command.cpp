#include "tools/rdmaquota/command.hpp"

#include <cstdio>

#include <fmt/core.h>

#include "policy/policy_file.hpp"
#include "shm/policy_segment.hpp"
#include "tools/rdmaquota/config.hpp"
#include "tools/rdmaquota/terminal.hpp"

namespace rdmaquota {

void warn(std::string_view message) { fmt::print(stderr, "rdmaquota: {}\n", printable(message)); }

int failed(std::string_view message) {
    warn(message);
    return status_failed;
}

int wrong_usage(std::string_view message) {
    warn(message);
    return status_usage;
}

Result<void> check_tenant(std::string_view tenant) {
    if (tenant == default_tenant) return {};
    return Error{fmt::format("there is no tenant '{}': this version has the one tenant '{}'", tenant, default_tenant)};
}

std::string default_policy_file() { return fmt::format("{}/rdmaquota.toml", config::policy_dir); }

Result<Policy> load_policy(const std::string& path) {
    auto policy = read_policy(path);
    if (!policy) return policy;
    for (const auto* scope : {&policy->process, &policy->tenant})
        if (scope->size() > policy_rows)
            return Error{fmt::format("{}: names {} devices in one table; at most {} are possible", path, scope->size(),
                                     policy_rows)};
    return policy;
}

}  // namespace rdmaquota
