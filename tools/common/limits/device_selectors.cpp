#include "tools/common/limits/device_selectors.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "shm/paths.hpp"
#include "shm/policy/limits_writer.hpp"
#include "tools/common/devices.hpp"
#include "tools/common/limits/named_devices.hpp"
#include "tools/common/text/directory_names.hpp"
#include "tools/common/text/file_text.hpp"

namespace rdmaquota {
namespace {

// The digits of a GUID, in lower case: "0250:F6FF:FE00:0001" and "0250f6fffe000001" are the same.
std::string guid_digits(std::string_view text) {
    std::string digits;
    for (const char c : text)
        if (c != ':') digits += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return digits;
}

std::set<std::string> netdevs_of(const std::string& ibdev, const std::string& uverbs) {
    std::set<std::string> found;
    for (auto& name : directory_names(uverbs + "/device/net")) found.insert(std::move(name));
    if (auto parent = first_line(ibdev + "/parent"); !parent.empty()) found.insert(std::move(parent));  // rxe and siw
    for (const auto& port : directory_names(ibdev + "/ports"))
        for (const auto& gid : directory_names(ibdev + "/ports/" + port + "/gid_attrs/ndevs"))
            if (auto name = first_line(ibdev + "/ports/" + port + "/gid_attrs/ndevs/" + gid); !name.empty()) found.insert(std::move(name));
    return found;
}

std::string pci_address_of(const std::string& uverbs) {
    std::error_code error;
    return std::filesystem::canonical(uverbs + "/device", error).filename().string();
}

bool selects(std::string_view selector, const std::string& ibdev, const std::string& uverbs) {
    const auto value = selector.substr(selector.find(':') + 1);
    if (selector.starts_with("pci:")) return value == pci_address_of(uverbs);
    if (selector.starts_with("guid:")) return guid_digits(value) == guid_digits(first_line(ibdev + "/node_guid"));
    return netdevs_of(ibdev, uverbs).contains(std::string(value));
}

// Cells of `from` that `to` does not say.
void add_missing(LimitRow& to, const LimitRow& from) {
    for (std::size_t i = 0; i < to.size(); ++i)
        if (to[i] == unset) to[i] = from[i];
}

// A device that several tables select, or one of them names, has one row: its cells are those of the table by name, then of the
// first that says something.
void merge(ScopeLimits& rows, const std::vector<BoundDevice>& bound) {
    const auto present_name = [&](const std::string& device) {
        const auto found = std::find_if(bound.begin(), bound.end(), [&](const BoundDevice& one) { return one.selector == device; });
        return found == bound.end() ? device : found->name;
    };
    std::stable_partition(rows.begin(), rows.end(), [](const DeviceLimits& row) { return !is_selector(row.device); });
    for (auto row = rows.begin(); row != rows.end();) {
        const auto first = std::find_if(rows.begin(), row, [&](const DeviceLimits& other) { return present_name(other.device) == present_name(row->device); });
        if (first == row) {
            ++row;
            continue;
        }
        add_missing(first->limits, row->limits);
        row = rows.erase(row);
    }
}

template <class Visit>
void for_each_table(TenantLimits& limits, Visit visit) {
    for (auto* tables : {&limits.limits, &limits.own_limits})
        for (auto& table : *tables) visit(table);
    for (auto* table : {&limits.guarantees, &limits.softs, &limits.own_softs, &limits.for_everyone, &limits.first_grants}) visit(*table);
}

std::optional<BoundDevice> select_among(const UverbsDevices& devices, std::string_view selector, const std::string& sys) {
    for (const auto& identity : devices.identities()) {
        const auto uverbs = sys + "/class/infiniband_verbs/" + identity;
        if (!selects(without_port(selector), sys + "/class/infiniband/" + first_line(uverbs + "/ibdev"), uverbs)) continue;
        return BoundDevice{std::string(selector), devices.name(identity) + std::string(port_part(selector)), uverbs_number(identity)};
    }
    return std::nullopt;
}

std::vector<BoundDevice> select_all(const std::set<std::string>& selectors) {
    std::vector<BoundDevice> bound;
    for (const auto& selector : selectors)
        if (auto device = select_among(UverbsDevices::now(), selector, "/sys")) bound.push_back(std::move(*device));
    return bound;
}

}  // namespace

std::optional<BoundDevice> select_device(std::string_view selector, const std::string& sys) {
    return select_among(UverbsDevices::read(sys + "/class/infiniband_verbs"), selector, sys);
}

void bind_devices(TenantLimits& limits) {
    std::set<std::string> selectors;
    for_each_table(limits, [&](const ScopeLimits& table) {
        for (const auto& row : table)
            if (is_selector(row.device)) selectors.insert(row.device);
    });
    limits.bound = select_all(selectors);
    for_each_table(limits, [&](ScopeLimits& table) { merge(table, limits.bound); });
}

Result<void> bind_devices_again(const std::string& directory) {
    for (const auto& place : limit_places(directory)) {
        const auto limits = LimitsSegment::open(limits_path(place.here));
        const auto selectors = limits ? limits->selectors() : std::set<std::string>();
        if (selectors.empty()) continue;
        auto writer = LimitsWriter::open(limits_path(place.here));
        if (!writer) return Error{writer.error()};
        writer->bind(select_all(selectors));
    }
    return {};
}

}  // namespace rdmaquota
