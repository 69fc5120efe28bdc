#include "tools/rdmaquotad/dynamic/capacity.hpp"

#include <dlfcn.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <sstream>

#include <fmt/core.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>

#include "tools/common/probe.hpp"

namespace rdmaquota {
namespace {

constexpr unsigned patience_s = 1;                // for a device that does not answer
constexpr std::chrono::seconds ask_again{60};     // one that could not be asked

struct DeviceMaxima {
    std::array<std::uint64_t, resource_count> of{};
    std::chrono::steady_clock::time_point asked = std::chrono::steady_clock::now();
    bool known = false;
};

// Asks the kernel itself: ibv_query_device would tell what the quota leaves where the policy has
// clamp_device_attr. The command is that of <rdma/ib_user_verbs.h>.
bool query(const ibv_context& context, ib_uverbs_query_device_resp& answer) {
    struct {
        ib_uverbs_cmd_hdr head;
        std::uint64_t response;
    } command{};
    command.head.command = IB_USER_VERBS_CMD_QUERY_DEVICE;
    command.head.in_words = sizeof command / 4;
    command.head.out_words = sizeof answer / 4;
    command.response = reinterpret_cast<std::uintptr_t>(&answer);
    return ::write(context.cmd_fd, &command, sizeof command) == sizeof command;
}

std::string words(const ib_uverbs_query_device_resp& answer) {
    return fmt::format("qp {} cq {} mr {} pd {} ah {} srq {} mw {}", answer.max_qp, answer.max_cq, answer.max_mr,
                       answer.max_pd, answer.max_ah, answer.max_srq, answer.max_mw);
}

// In a child: libibverbs stays out of the daemon, and so do its mistakes.
std::string ask(const std::string& device) {
    ::alarm(patience_s);
    void* library = ::dlopen("libibverbs.so.1", RTLD_NOW);
    if (library == nullptr) return {};
    const auto list = reinterpret_cast<ibv_device** (*)(int*)>(::dlsym(library, "ibv_get_device_list"));
    const auto name = reinterpret_cast<const char* (*)(ibv_device*)>(::dlsym(library, "ibv_get_device_name"));
    const auto open = reinterpret_cast<ibv_context* (*)(ibv_device*)>(::dlsym(library, "ibv_open_device"));
    if (list == nullptr || name == nullptr || open == nullptr) return {};
    auto** devices = list(nullptr);
    while (devices != nullptr && *devices != nullptr && device != name(*devices)) ++devices;
    auto* context = devices != nullptr && *devices != nullptr ? open(*devices) : nullptr;
    ib_uverbs_query_device_resp answer{};
    return context != nullptr && query(*context, answer) ? words(answer) : std::string();
}

DeviceMaxima maxima_of(const std::string& device) {
    DeviceMaxima maxima;
    std::istringstream answer(Probe([&device] { return ask(device); }).answer());
    std::string resource;
    std::uint64_t most = 0;
    while (answer >> resource >> most)
        if (const auto found = find_resource(resource)) {
            maxima.of[index(*found)] = most;
            maxima.known = true;
        }
    return maxima;
}

std::uint64_t device_capacity(const std::string& device, Resource resource) {
    static std::map<std::string, DeviceMaxima> asked;
    auto found = asked.find(device);
    const auto now = std::chrono::steady_clock::now();
    if (found == asked.end() || (!found->second.known && now - found->second.asked > ask_again))
        found = asked.insert_or_assign(device, maxima_of(device)).first;
    return found->second.of[index(resource)];
}

std::uint64_t node_memory() {
    struct sysinfo about {};
    return ::sysinfo(&about) == 0 ? std::uint64_t{about.totalram} * about.mem_unit : 0;
}

}  // namespace

std::uint64_t capacity(CapacityOf of, const std::string& device, Resource resource) {
    if (of == CapacityOf::node) return node_memory();
    return of == CapacityOf::device ? device_capacity(device, resource) : 0;
}

}  // namespace rdmaquota
