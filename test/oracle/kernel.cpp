#include "kernel.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace oracle {
namespace {

constexpr const char* cgroup = "/sys/fs/cgroup/oracle";

// The attributes in [data, data + bytes), each given to `visit` as type, start and length.
template <class Visit>
void for_each_attribute(const char* data, std::size_t bytes, Visit visit) {
    while (bytes >= sizeof(nlattr)) {
        nlattr head;
        std::memcpy(&head, data, sizeof head);
        if (head.nla_len < sizeof head || head.nla_len > bytes) return;
        visit(head.nla_type & NLA_TYPE_MASK, data + NLA_HDRLEN, std::size_t{head.nla_len} - NLA_HDRLEN);
        const auto step = std::min<std::size_t>(NLA_ALIGN(head.nla_len), bytes);
        data += step;
        bytes -= step;
    }
}

// One nested entry of the summary: a name and how many there are.
void read_entry(const char* data, std::size_t bytes, std::map<std::string, std::int64_t>& counts) {
    std::string name;
    std::int64_t current = 0;
    for_each_attribute(data, bytes, [&](int type, const char* value, std::size_t length) {
        if (type == RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME) name.assign(value, strnlen(value, length));
        if (type == RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR && length == sizeof current)
            std::memcpy(&current, value, sizeof current);
    });
    if (!name.empty()) counts[name] = current;
}

// One message of the dump: a device with its summary.
void read_device(const char* data, std::size_t bytes, const std::string& device,
                 std::map<std::string, std::int64_t>& counts) {
    std::string name;
    std::map<std::string, std::int64_t> found;
    for_each_attribute(data, bytes, [&](int type, const char* value, std::size_t length) {
        if (type == RDMA_NLDEV_ATTR_DEV_NAME) name.assign(value, strnlen(value, length));
        if (type != RDMA_NLDEV_ATTR_RES_SUMMARY) return;
        for_each_attribute(value, length,
                           [&](int, const char* entry, std::size_t size) { read_entry(entry, size, found); });
    });
    if (name == device) counts = found;
}

// True until the dump is over.
bool read_messages(const char* data, std::size_t bytes, const std::string& device,
                   std::map<std::string, std::int64_t>& counts) {
    while (bytes >= sizeof(nlmsghdr)) {
        nlmsghdr head;
        std::memcpy(&head, data, sizeof head);
        if (head.nlmsg_type == NLMSG_DONE || head.nlmsg_type == NLMSG_ERROR || head.nlmsg_len > bytes) return false;
        read_device(data + NLMSG_HDRLEN, head.nlmsg_len - NLMSG_HDRLEN, device, counts);
        const auto step = std::min<std::size_t>(NLMSG_ALIGN(head.nlmsg_len), bytes);
        data += step;
        bytes -= step;
    }
    return true;
}

}  // namespace

void enter_cgroup() {
    mkdir(cgroup, 0755);
    std::ofstream(std::string(cgroup) + "/cgroup.procs") << getpid() << std::flush;
}

std::map<std::string, std::int64_t> cgroup_counts(const std::string& device) {
    std::map<std::string, std::int64_t> counts{{"hca_handle", 0}, {"hca_object", 0}};
    std::ifstream file(std::string(cgroup) + "/rdma.current");
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string word;
        if (!(words >> word) || word != device) continue;
        while (words >> word)
            if (const auto equals = word.find('='); equals != std::string::npos)
                counts[word.substr(0, equals)] = std::atoll(word.c_str() + equals + 1);
    }
    return counts;
}

std::map<std::string, std::int64_t> resource_counts(const std::string& device) {
    std::map<std::string, std::int64_t> counts;
    const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
    nlmsghdr request{};
    request.nlmsg_len = NLMSG_HDRLEN;
    request.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_GET);
    request.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    if (fd < 0 || send(fd, &request, sizeof request, 0) < 0) {
        std::perror("oracle: netlink");
        std::exit(2);
    }
    std::vector<char> buffer(1 << 16);
    for (ssize_t n; (n = recv(fd, buffer.data(), buffer.size(), 0)) > 0;)
        if (!read_messages(buffer.data(), static_cast<std::size_t>(n), device, counts)) break;
    close(fd);
    return counts;
}

}  // namespace oracle
