#include "tools/common/guard/bpf_map.hpp"

#include <cstring>
#include <vector>

#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rdmaquota::bpf {
namespace {

std::uint64_t address(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

int call(int command, bpf_attr& attributes) {
    return static_cast<int>(::syscall(SYS_bpf, command, &attributes, sizeof attributes));
}

bpf_attr element(int map, const void* key, const void* value) {
    bpf_attr attributes{};
    attributes.map_fd = static_cast<std::uint32_t>(map);
    attributes.key = address(key);
    attributes.value = address(value);
    return attributes;
}

}  // namespace

int open_pinned(const std::string& path) {
    bpf_attr attributes{};
    attributes.pathname = address(path.c_str());
    return call(BPF_OBJ_GET, attributes);
}

Sizes sizes(int map) {
    bpf_map_info info{};
    bpf_attr attributes{};
    attributes.info.bpf_fd = static_cast<std::uint32_t>(map);
    attributes.info.info_len = sizeof info;
    attributes.info.info = address(&info);
    if (call(BPF_OBJ_GET_INFO_BY_FD, attributes) != 0) return {};
    return {info.key_size, info.value_size, info.max_entries};
}

bool get(int map, const void* key, void* value) {
    auto attributes = element(map, key, value);
    return call(BPF_MAP_LOOKUP_ELEM, attributes) == 0;
}

bool put(int map, const void* key, const void* value) {
    auto attributes = element(map, key, value);
    return call(BPF_MAP_UPDATE_ELEM, attributes) == 0;
}

bool put_other(int map, const void* key, const void* value, std::size_t bytes) {
    std::vector<char> before(bytes);
    return (get(map, key, before.data()) && std::memcmp(before.data(), value, bytes) == 0) || put(map, key, value);
}

bool erase(int map, const void* key) {
    auto attributes = element(map, key, nullptr);
    return call(BPF_MAP_DELETE_ELEM, attributes) == 0;
}

bool next(int map, const void* last, void* key) {
    auto attributes = element(map, last, key);  // the next key is where a value would be
    return call(BPF_MAP_GET_NEXT_KEY, attributes) == 0;
}

}  // namespace rdmaquota::bpf
