#include "tools/rdmaquotad/dynamic/capacity.hpp"

#include <dlfcn.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <sstream>

#include <fmt/core.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>

#include "tools/rdmaquotad/dynamic/question.hpp"

namespace rdmaquota {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds first_wait{1000};  // the daemon waits for an answer once
constexpr std::chrono::seconds patience{20};           // for a device that does not answer
constexpr std::chrono::seconds ask_again{60};          // one that did not, or could not be asked

using Maxima = std::array<std::uint64_t, resource_count>;

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

Maxima parse(const std::string& text) {
    Maxima maxima{};
    std::istringstream answer(text);
    std::string resource;
    std::uint64_t most = 0;
    while (answer >> resource >> most)
        if (const auto found = find_resource(resource)) maxima[index(*found)] = most;
    return maxima;
}

// What one device tells. All 0 as long as it has not.
class DeviceMaxima {
public:
    DeviceMaxima(const std::string& device, std::chrono::milliseconds wait) : device_(device) {
        ask_now();
        look(wait);
    }
    const Maxima& of() {
        if (question_) look(std::chrono::milliseconds(0));
        else if (!known_ && Clock::now() - asked_ > ask_again) ask_now();
        return maxima_;
    }

private:
    void ask_now() {
        asked_ = Clock::now();
        question_.emplace([this] { return ask(device_); });
    }
    // Loading libibverbs and its providers takes seconds on a busy machine.
    void look(std::chrono::milliseconds wait) {
        const auto answer = question_->answer(wait);
        if (!answer && Clock::now() - asked_ < patience) return;
        question_.reset();
        maxima_ = parse(answer.value_or(""));
        known_ = maxima_ != Maxima{};
    }

    std::string device_;
    Maxima maxima_{};
    bool known_ = false;
    Clock::time_point asked_;
    std::optional<Question> question_;
};

std::uint64_t device_maximum(const std::string& device, Resource resource, std::chrono::milliseconds wait) {
    static std::map<std::string, DeviceMaxima> devices;
    return devices.try_emplace(device, device, wait).first->second.of()[index(resource)];
}

std::uint64_t node_memory() {
    struct sysinfo about {};
    return ::sysinfo(&about) == 0 ? std::uint64_t{about.totalram} * about.mem_unit : 0;
}

}  // namespace

std::uint64_t capacity(CapacityOf of, const std::string& device, Resource resource) {
    if (of == CapacityOf::node) return node_memory();
    return of == CapacityOf::device ? device_maximum(device, resource, first_wait) : 0;
}

std::uint64_t told_by_device(const std::string& device, Resource resource) {
    return device_maximum(device, resource, std::chrono::milliseconds(0));
}

}  // namespace rdmaquota
