#include "provider/device_ops.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <vector>

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fmt/core.h>

namespace rdmaquota::provider {
namespace {

struct Range {
    std::uintptr_t begin;
    std::uintptr_t end;
    bool contains(std::uintptr_t address) const noexcept { return address >= begin && address < end; }
};

// The memory of one shared object.
struct Image {
    const link_map* object;
    std::vector<Range> all;
    std::vector<Range> code;
    std::vector<Range> writable;
    std::vector<Range> relro;
};

bool in(const std::vector<Range>& ranges, std::uintptr_t address) noexcept {
    return std::any_of(ranges.begin(), ranges.end(), [&](const Range& range) { return range.contains(address); });
}

template <class T>
bool in(const std::vector<Range>& ranges, T* pointer) noexcept {
    return in(ranges, reinterpret_cast<std::uintptr_t>(pointer));
}

int collect(dl_phdr_info* info, std::size_t, void* argument) {
    auto& image = *static_cast<Image*>(argument);
    if (info->dlpi_addr != image.object->l_addr || std::strcmp(info->dlpi_name, image.object->l_name) != 0) return 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& header = info->dlpi_phdr[i];
        const Range range{info->dlpi_addr + header.p_vaddr, info->dlpi_addr + header.p_vaddr + header.p_memsz};
        if (header.p_type == PT_GNU_RELRO) image.relro.push_back(range);
        if (header.p_type != PT_LOAD) continue;
        image.all.push_back(range);
        if (header.p_flags & PF_X) image.code.push_back(range);
        if (header.p_flags & PF_W) image.writable.push_back(range);
    }
    return 1;
}

bool is_identifier(const Image& image, const char* text) noexcept {
    for (std::size_t length = 0; length < 32; ++length) {
        if (!in(image.all, text + length)) return false;
        const char c = text[length];
        if (c == '\0') return length > 0;
        const bool accepted = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
        if (!accepted) return false;
    }
    return false;
}

template <class T>
bool null_or_in(const std::vector<Range>& ranges, T* pointer) noexcept {
    return !pointer || in(ranges, pointer);
}

// Real ABI numbers are below 20; some providers accept anything upwards.
bool are_abi_versions(std::uint32_t lowest, std::uint32_t highest) noexcept {
    constexpr std::uint32_t bound = 1000;
    return lowest < bound && lowest <= highest && (highest < bound || highest == INT_MAX);
}

bool is_device_ops(const Image& image, const DeviceOps& table) noexcept {
    return in(image.all, table.name) && are_abi_versions(table.match_min_abi_version, table.match_max_abi_version) &&
           in(image.all, table.match_table) &&
           null_or_in(image.all, table.static_providers) && null_or_in(image.code, table.match_device) &&
           in(image.code, table.alloc_context) && null_or_in(image.code, table.import_context) &&
           in(image.code, table.alloc_device) && null_or_in(image.code, table.uninit_device) &&
           is_identifier(image, table.name);
}

std::vector<DeviceOps*> candidates(const Image& image) {
    std::vector<DeviceOps*> found;
    for (const auto& range : image.writable)
        for (auto at = (range.begin + 7) & ~std::uintptr_t{7}; at + sizeof(DeviceOps) <= range.end; at += 8)
            if (auto* table = reinterpret_cast<DeviceOps*>(at); is_device_ops(image, *table)) found.push_back(table);
    return found;
}

Result<void> protect(const void* begin, std::size_t bytes, int protection) {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto first = reinterpret_cast<std::uintptr_t>(begin) & ~(page - 1);
    const auto last = (reinterpret_cast<std::uintptr_t>(begin) + bytes + page - 1) & ~(page - 1);
    if (mprotect(reinterpret_cast<void*>(first), last - first, protection) != 0)
        return Error{fmt::format("mprotect: {}", std::strerror(errno))};
    return {};
}

}  // namespace

Result<FoundOps> find_device_ops(void* handle) {
    link_map* object = nullptr;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &object) != 0 || !object) return Error{"the loader does not say where it is"};
    Image image{object, {}, {}, {}, {}};
    dl_iterate_phdr(&collect, &image);
    const auto found = candidates(image);
    if (found.size() != 1)
        return Error{fmt::format("{} structures in {} look like its device table, not one", found.size(),
                                 object->l_name)};
    return FoundOps{found.front(), in(image.relro, found.front())};
}

Result<void> replace_context_functions(const FoundOps& found, decltype(DeviceOps::alloc_context) alloc_context,
                                       decltype(DeviceOps::import_context) import_context) {
    if (found.read_only)
        if (auto writable = protect(found.table, sizeof(DeviceOps), PROT_READ | PROT_WRITE); !writable) return writable;
    found.table->alloc_context = alloc_context;
    if (found.table->import_context) found.table->import_context = import_context;
    if (found.read_only) return protect(found.table, sizeof(DeviceOps), PROT_READ);
    return {};
}

}  // namespace rdmaquota::provider
