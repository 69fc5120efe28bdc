#include "policy/environment.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/core.h>

#include "policy/printable.hpp"

namespace rdmaquota {
namespace {

class Reader {
public:
    Reader(EnvironmentLookup lookup, Tightening& into) : lookup_(lookup), into_(into) {}

    void settings(const char* variable, LimitRow& row, ScopeLimits& devices) {
        std::string_view rest = text(variable);
        while (!rest.empty()) {
            const auto comma = std::min(rest.find(','), rest.size());
            const auto parsed = parse_device_settings(rest.substr(0, comma));
            if (!parsed)
                warn(variable, parsed.error());
            else if (parsed->device == any_device || parsed->device == total_device || is_selector(parsed->device))
                warn(variable, fmt::format("name a device such as mlx5_0 instead of '{}', or none for all", parsed->device));
            else if (is_percentage(parsed->settings.front().limit))
                warn(variable, fmt::format("'{}' is a percentage, which only the policy can have; write an amount",
                                           printable(rest.substr(0, comma))));
            else if (&row == &into_.tenant && is_rate(parsed->settings.front().resource))  // its word is the whole tenant's
                warn(variable, fmt::format("'{}' is a rate, which counts for the whole tenant; set it with RDMAQUOTA_LIMIT for each process",
                                           printable(rest.substr(0, comma))));
            else
                lower(parsed->device.empty() ? row : row_for(devices, parsed->device), parsed->settings.front());
            rest.remove_prefix(std::min(comma + 1, rest.size()));
        }
    }

    // The interceptor's numbers are plain decimals, here with a factor for those in MiB.
    void number(const char* variable, LimitRow& row, Resource resource, std::uint64_t factor = 1) {
        const auto value = text(variable);
        if (value.empty()) return;
        std::uint64_t count = 0;
        const auto [end, status] = std::from_chars(value.data(), value.data() + value.size(), count);
        if (status != std::errc{} || end != value.data() + value.size() || count > max_amount / factor)
            return warn(variable, fmt::format("'{}' is no number in range", printable(value)));
        lower(row, {resource, count * factor});
    }

    bool enabled(const char* variable) const {
        const auto value = text(variable);
        return value == "1" || value == "true" || value == "TRUE" || value == "yes" || value == "on";
    }

    // The interceptor wrote levels in capitals or as numbers 0 (none) … 4 (debug).
    void log_level(const char* variable) {
        std::string value(text(variable));
        if (value.empty()) return;
        std::transform(value.begin(), value.end(), value.begin(),
                       [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
        if (value == "warn") value = "warning";
        if (value.size() == 1 && value[0] >= '0' && value[0] <= '4') {
            into_.log_level = static_cast<LogLevel>(value[0] - '0');
            return;
        }
        if (const auto level = parse_log_level(value))
            into_.log_level = level.value();
        else
            warn(variable, level.error());
    }

    void log_file(const char* variable) {
        if (const auto value = text(variable); !value.empty()) into_.log_file = value;
    }

private:
    std::string_view text(const char* variable) const {
        const char* value = lookup_(variable);
        return value ? value : "";
    }

    static void lower(LimitRow& row, const Setting& setting) {
        auto& entry = row[index(setting.resource)];
        entry = entry == unset ? setting.limit : std::min(entry, setting.limit);
    }

    void warn(const char* variable, const std::string& why) {
        into_.warnings.push_back(fmt::format("environment variable {}: {}; this part of it is ignored", variable, why));
    }

    EnvironmentLookup lookup_;
    Tightening& into_;
};

void read_interceptor_names(Reader& reader, Tightening& into) {
    if (!reader.enabled("RDMA_INTERCEPT_ENABLE")) return;
    if (reader.enabled("RDMA_INTERCEPT_ENABLE_QP_CONTROL")) {
        reader.number("RDMA_INTERCEPT_MAX_QP_PER_PROCESS", into.process, Resource::qp);
        reader.number("RDMA_INTERCEPT_MAX_GLOBAL_QP", into.tenant, Resource::qp);
    }
    reader.number("RDMA_INTERCEPT_MAX_MR_PER_PROCESS", into.process, Resource::mr);
    reader.number("RDMA_INTERCEPT_MAX_GLOBAL_MR", into.tenant, Resource::mr);
    reader.number("RDMA_INTERCEPT_MAX_MEMORY_PER_PROCESS", into.process, Resource::mr_bytes, 1024 * 1024);
    reader.number("RDMA_INTERCEPT_MAX_GLOBAL_MEMORY", into.tenant, Resource::mr_bytes);
    reader.log_level("RDMA_INTERCEPT_LOG_LEVEL");
    reader.log_file("RDMA_INTERCEPT_LOG_FILE_PATH");
}

}  // namespace

Tightening read_environment(EnvironmentLookup lookup) {
    Tightening result;
    Reader reader(lookup, result);
    read_interceptor_names(reader, result);
    reader.settings("RDMAQUOTA_LIMIT", result.process, result.process_devices);
    reader.settings("RDMAQUOTA_TENANT_LIMIT", result.tenant, result.tenant_devices);
    reader.log_level("RDMAQUOTA_LOG_LEVEL");
    reader.log_file("RDMAQUOTA_LOG_FILE");
    return result;
}

}  // namespace rdmaquota
