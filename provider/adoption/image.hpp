// The memory of one loaded shared object, and writing where the loader has made it read-only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <link.h>

#include "policy/result.hpp"

namespace rdmaquota::provider {

struct Range {
    std::uintptr_t begin;
    std::uintptr_t end;
    bool contains(std::uintptr_t address) const noexcept { return address >= begin && address < end; }
};
using Ranges = std::vector<Range>;

template <class T>
bool in(const Ranges& ranges, T* pointer) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    return std::any_of(ranges.begin(), ranges.end(), [&](const Range& range) { return range.contains(address); });
}

struct Image {
    Ranges all;
    Ranges code;
    Ranges writable;
    Ranges relro;  // read-only since the loader finished; whole pages
};

// `info` is what dl_iterate_phdr tells of the object.
Image image_of(const dl_phdr_info& info);

// `object` is the object's entry in the loader's list. Empty for one that is not loaded.
Image image_of(const link_map* object);

// The dynamic section of an object; null where it has none. It ends with DT_NULL.
const ElfW(Dyn)* dynamic_of(const dl_phdr_info& info) noexcept;

// What an entry of it points to, in an object at `base`. The loader has replaced offsets by addresses, except in sections that it
// cannot write to.
std::uintptr_t address_of(std::uintptr_t base, const ElfW(Dyn)& entry) noexcept;

// The symbols that an object exports; empty where it has no GNU hash table.
std::span<ElfW(Sym)> exports_of(const link_map& object) noexcept;

// Writes words of images. The pages that it needs are writable while it lives, and then protected as they were.
class Writing {
public:
    Writing() = default;
    Writing(const Writing&) = delete;
    ~Writing();

    // Other threads see the old word or the new one.
    Result<void> write(const Image& image, void* address, std::uintptr_t word);

private:
    struct Page {
        std::uintptr_t address;
        int protection;  // before
    };
    std::vector<Page> opened_;
};

// The process's memory as a file (proc(5)), through which what the loader made read-only is written without changing its
// protection: a quarter of the instructions of Writing, but not one word at once for other threads. Some kernels and
// processes are refused it (proc_mem.force_override, setuid).
class MemoryFile {
public:
    MemoryFile() = default;
    MemoryFile(const MemoryFile&) = delete;
    ~MemoryFile();

    // Opens the file at the first call. False when nothing was written.
    bool write(void* address, const void* data, std::size_t size) noexcept;

private:
    int fd_ = -1;
};

}  // namespace rdmaquota::provider
