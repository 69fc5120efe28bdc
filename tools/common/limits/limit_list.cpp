#include "tools/common/limits/limit_list.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

#include "tools/common/views/json.hpp"
#include "policy/fixed_text.hpp"

namespace rdmaquota {
namespace {

std::string_view source_of(Scope scope, const Origin& origin) {
    if (own_of(origin) & (own_by_set | own_by_template)) return "set";
    return scope == Scope::process && !(own_of(origin) & own_in_file) ? "[process]" : "policy";
}

// Whether the row of `device` itself has a value, which may be a share or a rule's limit alone; or that of "*" has a percentage, which
// is another amount for each device.
bool row_has_value(const LimitsSegment& limits, Scope scope, const std::string& device, Resource resource) {
    if (device != total_device && is_percentage(limits.as_written(LimitPart::limit, scope, device, resource))) return true;
    const auto* row = limits.row(scope, device);
    if (row == nullptr) return false;
    const auto& origin = limits.origins_of(*row).of[index(resource)];
    return load_limit(row, resource) != unset || load(origin.configured) != unset ||
           load(row->soft[index(resource)]) != unset || load(origin.guarantee) != unset;
}

// The same figures as `show`: what the row of `device` does not say, the row "*" says.
LimitView view_of(const LimitsSegment& limits, Scope scope, const std::string& device, Resource resource) {
    LimitView view{scope, device, resource};
    view.limit = limits.limit(scope, device, resource);
    view.configured = limits.configured(scope, device, resource);
    view.written = limits.as_written(LimitPart::limit, scope, device, resource);
    view.reason = limits.reason(scope, device, resource);
    const auto* origin = limits.origin(scope, device, resource);
    if (view.reason != Reason::configured && origin != nullptr) view.why = fixed_text(origin->why);
    const bool inherits = (origin == nullptr || load(origin->configured) == unset) && !stands_alone(device);
    if (const auto* any = limits.origin(scope, any_device, resource); inherits && any != nullptr) origin = any;
    if (origin != nullptr) view.from = source_of(scope, *origin);
    if (scope == Scope::process) return view;
    view.soft = limits.soft(device, resource);
    view.guarantee = limits.guarantee(device, resource);
    return view;
}

bool says_something(const LimitView& view) {
    return view.limit != unlimited || view.configured != unlimited || is_percentage(view.written) || view.soft != unlimited || view.guarantee != 0;
}

// Not what is usual.
std::string notes_on(const LimitView& view) {
    std::string text;
    const auto add = [&](const std::string& note) { text += (text.empty() ? "" : ", ") + note; };
    if (view.soft != unlimited) add(fmt::format("{} {}", name(LimitPart::soft, view.resource), format_amount(view.resource, view.soft)));
    if (view.guarantee != 0) add(fmt::format("guaranteed {}", format_amount(view.resource, view.guarantee)));
    if (view.reason != Reason::configured)
        add(fmt::format("{} configured ({})", format_amount(view.resource, view.configured), name(view.reason)));
    return text;
}

}  // namespace

std::vector<LimitView> limits_in_force(const LimitsSegment& limits) {
    std::vector<LimitView> views;
    for (const auto scope : {Scope::tenant, Scope::process}) {
        auto devices = limits.devices(scope);
        for (auto& device : limits.devices(capacity_scope)) devices.push_back(std::move(device));
        std::sort(devices.begin(), devices.end());
        devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
        for (const auto& device : devices)
            for (const auto& row : limit_table)
                if (row_has_value(limits, scope, device, row.id))
                    if (auto view = view_of(limits, scope, device, row.id); says_something(view))
                        views.push_back(std::move(view));
    }
    return views;
}

void print_limits(const Terminal& terminal, const std::vector<LimitView>& limits) {
    if (limits.empty()) return fmt::print("nothing is limited\n");
    Table table({"OF", "DEVICE", "RESOURCE", "LIMIT", "FROM", ""},
                {Align::left, Align::left, Align::left, Align::right, Align::left, Align::left});
    for (const auto& view : limits)
        table.add({view.scope == Scope::process ? "each process" : "the tenant", printable(view.device),
                   std::string(info(view.resource).name),
                   format_amount(view.resource, view.limit, view.reason == Reason::configured ? view.written : unset),
                   std::string(view.from), notes_on(view)});
    table.print(terminal);
}

Json limits_json(const std::vector<LimitView>& limits) {
    Json list = Json::array();
    for (const auto& view : limits) {
        list.push_back({{"scope", name(view.scope)},
                        {"device", view.device},
                        {"resource", info(view.resource).name},
                        {"limit", limit_json(view.limit)},
                        {"configured", limit_json(view.configured)},
                        {name(LimitPart::soft, view.resource), limit_json(view.soft)},
                        {"guarantee", view.guarantee},
                        {"from", view.from},
                        {"reason", view.reason == Reason::configured ? Json(nullptr) : Json(name(view.reason))},
                        {"why", view.why.empty() ? Json(nullptr) : Json(view.why)}});
        add_percent(list.back(), view.written);
    }
    return list;
}

}  // namespace rdmaquota
