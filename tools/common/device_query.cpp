#include "tools/common/device_query.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include <fmt/core.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>

#include "tools/common/process/probe.hpp"

namespace rdmaquota {
namespace {

constexpr const char* begins = "maxima of the device: ";

template <class Function>
Function* function_in(void* library, const char* name) {
    return reinterpret_cast<Function*>(::dlsym(library, name));
}

ibv_context* open(const std::string& device) {
    void* library = ::dlopen("libibverbs.so.1", RTLD_NOW);
    if (library == nullptr) return nullptr;
    auto* list = function_in<ibv_device**(int*)>(library, "ibv_get_device_list");
    auto* open_device = function_in<ibv_context*(ibv_device*)>(library, "ibv_open_device");
    if (list == nullptr || open_device == nullptr) return nullptr;
    for (auto** one = list(nullptr); one != nullptr && *one != nullptr; ++one)
        if (device == (*one)->name) return open_device(*one);
    return nullptr;
}

// By the command of <rdma/ib_user_verbs.h>.
bool ask(const ibv_context& context, ib_uverbs_query_device_resp& answer) {
    struct {
        ib_uverbs_cmd_hdr head;
        std::uint64_t response;
    } command{};
    command.head = {IB_USER_VERBS_CMD_QUERY_DEVICE, sizeof command / 4, sizeof answer / 4};
    command.response = reinterpret_cast<std::uintptr_t>(&answer);
    return ::write(context.cmd_fd, &command, sizeof command) == sizeof command;
}

}  // namespace

std::string query_device(const std::string& device) {
    const auto* context = open(device);
    ib_uverbs_query_device_resp most{};
    if (context == nullptr || !ask(*context, most)) return {};
    return fmt::format("{}qp {} cq {} mr {} pd {} ah {} srq {} mw {}", begins, most.max_qp, most.max_cq, most.max_mr, most.max_pd,
                       most.max_ah, most.max_srq, most.max_mw);
}

DeviceMaxima device_maxima(const std::string& device) {
    const Probe probe([&] { return query_device(device); });
    return parse_maxima(probe.answer());
}

DeviceMaxima parse_maxima(const std::string& text) {
    DeviceMaxima maxima{};
    const auto at = text.rfind(begins);
    if (at == text.npos) return maxima;
    std::istringstream words(text.substr(at + std::string_view(begins).size()));
    std::string resource;
    std::uint64_t most = 0;
    while (words >> resource >> most)
        if (const auto found = find_resource(resource)) maxima[index(*found)] = most;
    return maxima;
}

}  // namespace rdmaquota
