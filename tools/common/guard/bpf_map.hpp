// Maps of BPF by bpf(2) itself, for programs that are not linked to libbpf. Keys and values have the sizes of the map's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace rdmaquota::bpf {

// A descriptor of what is pinned there, or -1 with errno.
int open_pinned(const std::string& path);

struct Sizes {
    std::uint32_t key, value, entries;
    bool operator==(const Sizes&) const = default;
};
Sizes sizes(int map);  // zeros where it is none

bool get(int map, const void* key, void* value);
bool put(int map, const void* key, const void* value);
// Leaves the same value, of `bytes`, alone: the kernel gives one that was replaced to others while a program may still read it.
bool put_other(int map, const void* key, const void* value, std::size_t bytes);
bool erase(int map, const void* key);
// `last` null: the first key. False at the end.
bool next(int map, const void* last, void* key);

}  // namespace rdmaquota::bpf
