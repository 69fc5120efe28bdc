#include "tools/rdmaquotad/kernel/netlink_snapshot.hpp"

#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <fmt/core.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <rdma/rdma_netlink.h>

namespace rdmaquota {
namespace {

struct Device {
    std::uint32_t number;
    std::string name;
};

// How one kind of object is asked for and listed.
struct Kind {
    int command;
    int list;
    Resource resource;
};

constexpr Kind kinds[] = {
    {RDMA_NLDEV_CMD_RES_CTX_GET, RDMA_NLDEV_ATTR_RES_CTX, Resource::hca_handle},
    {RDMA_NLDEV_CMD_RES_PD_GET, RDMA_NLDEV_ATTR_RES_PD, Resource::pd},
    {RDMA_NLDEV_CMD_RES_CQ_GET, RDMA_NLDEV_ATTR_RES_CQ, Resource::cq},
    {RDMA_NLDEV_CMD_RES_QP_GET, RDMA_NLDEV_ATTR_RES_QP, Resource::qp},
    {RDMA_NLDEV_CMD_RES_MR_GET, RDMA_NLDEV_ATTR_RES_MR, Resource::mr},
    {RDMA_NLDEV_CMD_RES_SRQ_GET, RDMA_NLDEV_ATTR_RES_SRQ, Resource::srq},
};

using Uses = std::map<std::pair<std::uint32_t, std::string>, ResourceCounts>;

struct Free {
    void operator()(nl_sock* socket) const { nl_socket_free(socket); }
    void operator()(nl_msg* message) const { nlmsg_free(message); }
};

class Dump {
public:
    Dump() : socket_(nl_socket_alloc()) {}

    Result<void> connect() {
        if (!socket_) return Error{"no memory for a netlink socket"};
        const int status = nl_connect(socket_.get(), NETLINK_RDMA);
        return status < 0 ? failed("connect", status) : Result<void>();
    }

    // Calls `visit` with the attributes of each answer. A null `device` asks about all devices.
    template <class Visit>
    Result<void> ask(int command, const Device* device, Visit visit) {
        const int type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command);
        const std::unique_ptr<nl_msg, Free> request(nlmsg_alloc_simple(type, NLM_F_DUMP));
        if (!request || (device && nla_put_u32(request.get(), RDMA_NLDEV_ATTR_DEV_INDEX, device->number) < 0))
            return Error{"no memory for a netlink request"};
        const auto each = [](nl_msg* answer, void* with) {
            (*static_cast<Visit*>(with))(nlmsg_attrdata(nlmsg_hdr(answer), 0), nlmsg_attrlen(nlmsg_hdr(answer), 0));
            return static_cast<int>(NL_OK);
        };
        nl_socket_modify_cb(socket_.get(), NL_CB_VALID, NL_CB_CUSTOM, each, &visit);
        int status = nl_send_auto(socket_.get(), request.get());
        if (status >= 0) status = nl_recvmsgs_default(socket_.get());
        return status < 0 ? failed("ask", status) : Result<void>();
    }

private:
    static Error failed(const char* what, int status) {
        return {fmt::format("RDMA netlink cannot be used ({}: {})", what, nl_geterror(status))};
    }
    std::unique_ptr<nl_sock, Free> socket_;
};

template <class Each>
void for_each(const nlattr* first, int bytes, Each each) {
    for (; nla_ok(first, bytes); first = nla_next(first, &bytes)) each(*first);
}

Result<std::vector<Device>> devices(Dump& dump) {
    std::vector<Device> found;
    const auto read = [&](const nlattr* first, int bytes) {
        Device device{0, {}};
        for_each(first, bytes, [&](const nlattr& attribute) {
            if (nla_type(&attribute) == RDMA_NLDEV_ATTR_DEV_INDEX) device.number = nla_get_u32(&attribute);
            if (nla_type(&attribute) == RDMA_NLDEV_ATTR_DEV_NAME) device.name = nla_get_string(&attribute);
        });
        found.push_back(std::move(device));
    };
    if (const auto asked = dump.ask(RDMA_NLDEV_CMD_GET, nullptr, read); !asked) return Error{asked.error()};
    return found;
}

// The kernel's own objects have a name in place of a pid.
void count(Uses& uses, const Device& device, Resource resource, const nlattr& entry) {
    std::uint32_t pid = 0;
    std::uint64_t length = 0;
    for_each(static_cast<const nlattr*>(nla_data(&entry)), nla_len(&entry), [&](const nlattr& attribute) {
        if (nla_type(&attribute) == RDMA_NLDEV_ATTR_RES_PID) pid = nla_get_u32(&attribute);
        if (nla_type(&attribute) == RDMA_NLDEV_ATTR_RES_MRLEN) length = nla_get_u64(&attribute);
    });
    if (pid == 0) return;
    auto& live = uses[{pid, device.name}];
    ++live[index(resource)];
    if (resource == Resource::mr) live[index(Resource::mr_bytes)] += length;
}

Result<void> add_objects(Dump& dump, const Device& device, const Kind& kind, Uses& uses) {
    return dump.ask(kind.command, &device, [&](const nlattr* first, int bytes) {
        for_each(first, bytes, [&](const nlattr& list) {
            if (nla_type(&list) != kind.list) return;
            for_each(static_cast<const nlattr*>(nla_data(&list)), nla_len(&list),
                     [&](const nlattr& entry) { count(uses, device, kind.resource, entry); });
        });
    });
}

// The kernel names the thread that made an object.
std::uint32_t process_of(std::uint32_t thread) {
    std::ifstream status(fmt::format("/proc/{}/status", thread));
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("Tgid:")) return static_cast<std::uint32_t>(std::strtoul(line.c_str() + 5, nullptr, 10));
    return thread;
}

std::vector<NetlinkUse> of_processes(const Uses& threads) {
    Uses uses;
    for (const auto& [who, live] : threads) {
        auto& all = uses[{process_of(who.first), who.second}];
        for (std::size_t i = 0; i < resource_count; ++i) all[i] += live[i];
    }
    std::vector<NetlinkUse> found;
    for (const auto& [who, live] : uses) found.push_back({who.first, who.second, live});
    return found;
}

}  // namespace

Result<std::vector<NetlinkUse>> netlink_snapshot() {
    Dump dump;
    if (auto connected = dump.connect(); !connected) return Error{connected.error()};
    const auto there = devices(dump);
    if (!there) return Error{there.error()};
    Uses uses;
    for (const auto& device : *there)
        for (const auto& kind : kinds)
            if (auto added = add_objects(dump, device, kind, uses); !added) return Error{added.error()};
    return of_processes(uses);
}

}  // namespace rdmaquota
