#include "tools/common/tenants/pod_names.hpp"

#include <algorithm>
#include <cctype>

#include "tools/common/text/directory_names.hpp"

namespace rdmaquota {
namespace {

using namespace std::chrono_literals;

constexpr auto names_are_good_for = 10s;

// Hexadecimal digits in groups. kubelet's slices have '_' between these, other cgroups '-'.
bool is_uid(std::string_view word) {
    return word.size() == 36 && std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isxdigit(c) != 0 || c == '-'; });
}

}  // namespace

PodNames::Name PodNames::of(const std::string& uid) {
    const auto found = names_.find(uid);
    if (found != names_.end()) return found->second;
    const auto now = std::chrono::steady_clock::now();
    if (looked_ != decltype(looked_){} && now - looked_ < names_are_good_for) return {{}, uid};
    looked_ = now;
    look();
    const auto again = names_.find(uid);
    return again == names_.end() ? Name{{}, uid} : again->second;
}

// Neither a namespace nor a pod's name has an underscore.
void PodNames::look() {
    names_.clear();
    for (const auto& entry : directory_names(directory_)) {
        const auto first = entry.find('_'), last = entry.rfind('_');
        if (first == entry.npos || first == last) continue;
        names_[entry.substr(last + 1)] = {entry.substr(0, first), entry.substr(first + 1, last - first - 1)};
    }
}

std::string pod_of_tenant(PodNames& names, std::string_view tenant) {
    std::string uid(tenant.substr(tenant.rfind('/') + 1));
    std::replace(uid.begin(), uid.end(), '_', '-');
    if (!is_uid(uid)) return {};
    const auto name = names.of(uid);
    return name.name_space.empty() ? std::string() : name.name_space + '/' + name.pod;
}

std::string pod_of_tenant(std::string_view tenant) {
    static PodNames names;
    return pod_of_tenant(names, tenant);
}

}  // namespace rdmaquota
