#include "policy/tenant.hpp"

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "policy/braces.hpp"
#include "policy/pattern.hpp"
#include "policy/printable.hpp"

namespace rdmaquota {
namespace {

bool accepted(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_.:@-\\").find(c) != std::string_view::npos;
}

Error no_name(std::string_view name, std::string_view why) {
    return {fmt::format("'{}' is no tenant name: {}", printable(name), why)};
}

// Below the node; what the guard in the kernel follows (guard_depth in tools/common/guard/kernel_counts.h).
constexpr std::size_t most_levels = 10;

std::size_t depth(std::string_view name) noexcept {
    return static_cast<std::size_t>(std::count(name.begin(), name.end(), '/'));
}

// `name` is the element's whole name, for the error.
Result<void> check_element(std::string_view name, std::string_view element) {
    if (element.empty()) return no_name(name, "it has an empty part; write one such as physics or physics/atlas");
    if (element[0] == '.' || element[0] == '-') return no_name(name, "no part of it may begin with '.' or '-'");
    const auto wrong = std::find_if_not(element.begin(), element.end(), accepted);
    if (wrong == element.end()) return {};
    return no_name(name, fmt::format("'{}' is not possible; write letters, digits, any of _ . : @ - \\, and '/' "
                                     "between the parts",
                                     printable(element.substr(static_cast<std::size_t>(wrong - element.begin()), 1))));
}

// `name` has no braces; `shown` is what the errors say.
Result<void> check_elements(std::string_view shown, std::string_view name) {
    for (auto rest = name;; rest.remove_prefix(rest.find('/') + 1)) {
        if (const auto checked = check_element(shown, rest.substr(0, rest.find('/'))); !checked) return checked;
        if (rest.find('/') == rest.npos) break;
    }
    if (shown.size() >= tenant_name_bytes)
        return no_name(shown, fmt::format("it is longer than {} bytes", tenant_name_bytes - 1));
    if (depth(name) >= most_levels)
        return no_name(shown, fmt::format("it has more than {} parts", most_levels));
    const auto root = name.substr(0, name.find('/'));
    if (root == node_tenant)
        return no_name(shown, "the node is all tenants together; write its limits below [node.\"*\"]");
    if (root == default_tenant && root != name)
        return no_name(shown, "default is where no match holds, and no tenant lies below it");
    return {};
}

// {user} stands alone between slashes.
bool whole_element(std::string_view before, std::string_view after) noexcept {
    return (before.empty() || before.ends_with('/')) && (after.empty() || after.starts_with('/'));
}

}  // namespace

Result<void> check_tenant_name(std::string_view name) { return check_elements(name, name); }

Result<void> check_template_name(std::string_view name) {
    std::string filled;  // with a letter for each {NAME}
    bool user = false;
    auto rest = name;
    for (;;) {
        const auto braces = take_braces(rest);
        if (!braces) return no_name(name, braces.error());
        if (!braces.value()) break;
        const auto& [before, inside] = *braces.value();
        filled.append(before).append("x");
        if (inside != user_braces) continue;
        if (user) return no_name(name, "{user} is in it twice");
        if (!whole_element(filled.substr(0, filled.size() - 1), rest))
            return no_name(name, "{user} must stand alone between '/'");
        user = true;
    }
    if (filled.empty()) return no_name(name, "a template has a part in braces, such as {user}");
    return check_elements(name, filled.append(rest));
}

bool is_instance(std::string_view tenant, std::string_view of) noexcept {
    Captures captures;
    auto name_rest = tenant, template_rest = of;
    if (depth(tenant) != depth(of)) return false;
    for (auto left = depth(of) + 1; left > 0; --left) {
        const auto name_end = std::min(name_rest.find('/'), name_rest.size());
        const auto template_end = std::min(template_rest.find('/'), template_rest.size());
        if (!element_matches(template_rest.substr(0, template_end), name_rest.substr(0, name_end), captures))
            return false;
        name_rest.remove_prefix(std::min(name_end + 1, name_rest.size()));
        template_rest.remove_prefix(std::min(template_end + 1, template_rest.size()));
    }
    return true;
}

bool is_below(std::string_view tenant, std::string_view above) noexcept {
    if (above == node_tenant) return tenant != node_tenant;
    return tenant.size() > above.size() && tenant.starts_with(above) && tenant[above.size()] == '/';
}

std::string_view parent_of(std::string_view tenant) noexcept {
    const auto slash = tenant.rfind('/');
    return slash == tenant.npos ? node_tenant : tenant.substr(0, slash);
}

std::string user_element(std::uint32_t uid) { return fmt::format("#{}", uid); }

}  // namespace rdmaquota
