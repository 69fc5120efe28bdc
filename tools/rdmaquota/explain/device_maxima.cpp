#include "tools/rdmaquota/explain/device_maxima.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include <fmt/core.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>

#include "tools/common/probe.hpp"

namespace rdmaquota {
namespace {

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

// The kernel's own answer, by the command of <rdma/ib_user_verbs.h>.
bool ask(const ibv_context& context, ib_uverbs_query_device_resp& answer) {
    struct {
        ib_uverbs_cmd_hdr head;
        std::uint64_t response;
    } command{};
    command.head = {IB_USER_VERBS_CMD_QUERY_DEVICE, sizeof command / 4, sizeof answer / 4};
    command.response = reinterpret_cast<std::uintptr_t>(&answer);
    return ::write(context.cmd_fd, &command, sizeof command) == sizeof command;
}

std::uint32_t most(const ib_uverbs_query_device_resp& of, Resource resource) {
    switch (resource) {
        case Resource::qp:
            return of.max_qp;
        case Resource::cq:
            return of.max_cq;
        case Resource::mr:
            return of.max_mr;
        case Resource::pd:
            return of.max_pd;
        case Resource::ah:
            return of.max_ah;
        case Resource::srq:
            return of.max_srq;
        case Resource::mw:
            return of.max_mw;
        default:
            return 0;
    }
}

}  // namespace

std::uint64_t device_maximum(const std::string& device, Resource resource) {
    const Probe probe([&] {
        const auto* context = open(device);
        ib_uverbs_query_device_resp answer{};
        return context != nullptr && ask(*context, answer) ? std::to_string(most(answer, resource)) : std::string("0");
    });
    const auto at = probe.answer().find_last_not_of("0123456789");  // behind what libraries wrote
    return std::strtoull(probe.answer().c_str() + (at == std::string::npos ? 0 : at + 1), nullptr, 10);
}

}  // namespace rdmaquota
