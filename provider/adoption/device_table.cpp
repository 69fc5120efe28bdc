#include "provider/adoption/device_table.hpp"

#include <algorithm>
#include <climits>
#include <vector>

#include <dlfcn.h>
#include <link.h>

#include <fmt/core.h>

namespace rdmaquota::provider {
namespace {

bool is_identifier(const Image& image, const char* text) noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(text);
    const auto range = std::ranges::find_if(image.all, [&](const Range& each) { return each.contains(begin); });
    const auto most = range == image.all.end() ? 0 : std::min<std::size_t>(range->end - begin, 32);
    for (std::size_t length = 0; length < most; ++length) {
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

// Real ABI numbers are below 20; some providers set no upper bound.
bool are_abi_versions(std::uint32_t lowest, std::uint32_t highest) noexcept {
    constexpr std::uint32_t bound = 1000;
    return lowest < bound && lowest <= highest && (highest < bound || highest == INT_MAX);
}

bool is_device_ops(const Image& image, const DeviceOps& table) noexcept {
    return in(image.all, table.match_table) &&
           null_or_in(image.all, table.static_providers) && null_or_in(image.code, table.match_device) &&
           in(image.code, table.alloc_context) && null_or_in(image.code, table.import_context) &&
           in(image.code, table.alloc_device) && null_or_in(image.code, table.uninit_device) &&
           is_identifier(image, table.name);
}

// Few words are addresses within the object, with two small numbers after them. That is quickly seen.
std::vector<DeviceOps*> candidates(const Image& image, const Ranges& ranges) {
    std::vector<DeviceOps*> found;
    const auto first = std::ranges::min(image.all, {}, &Range::begin).begin;
    const auto bytes = std::ranges::max(image.all, {}, &Range::end).end - first;
    const auto from = image.writable.empty() ? first : std::ranges::min(image.writable, {}, &Range::begin).begin;
    for (const auto& range : ranges)
        for (auto at = (std::max(range.begin, from) + 7) & ~std::uintptr_t{7}; at + sizeof(DeviceOps) <= range.end;
             at += 8) {
            auto* table = reinterpret_cast<DeviceOps*>(at);
            if (reinterpret_cast<std::uintptr_t>(table->name) - first < bytes &&
                are_abi_versions(table->match_min_abi_version, table->match_max_abi_version) &&
                is_device_ops(image, *table))
                found.push_back(table);
        }
    return found;
}

}  // namespace

std::uintptr_t load_address(void* handle) noexcept {
    link_map* object = nullptr;
    return dlinfo(handle, RTLD_DI_LINKMAP, &object) == 0 && object ? object->l_addr : 0;
}

Result<FoundOps> find_device_ops(void* handle) {
    link_map* object = nullptr;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &object) != 0 || !object) return Error{"the loader does not say where it is"};
    return find_device_ops(image_of(object), object->l_name, object->l_addr);
}

Result<FoundOps> find_device_ops(Image image, std::string path, std::uintptr_t base) {
    if (image.all.empty()) return Error{fmt::format("the loader does not say where {} lies", path)};
    auto found = candidates(image, image.relro);  // where constants are that hold addresses
    if (found.empty()) found = candidates(image, image.writable);
    if (found.size() != 1)
        return Error{fmt::format("{} structures in {} look like its device table, not one", found.size(), path)};
    return FoundOps{found.front(), std::move(image), std::move(path), base};
}

Result<void> replace_functions(MemoryFile& memory, const FoundOps& found, DeviceFunctions functions) {
    auto& table = *found.table;
    if (table.match_device) functions.match_device = table.match_device;
    if (!table.import_context) functions.import_context = nullptr;
    if (memory.write(&table.match_device, &functions, sizeof functions)) return {};
    Writing writing;
    const auto write = [&](auto* pointer, auto function) {
        return writing.write(found.image, pointer, reinterpret_cast<std::uintptr_t>(function));
    };
    if (auto done = write(&table.match_device, functions.match_device); !done) return done;
    if (auto done = write(&table.import_context, functions.import_context); !done) return done;
    return write(&table.alloc_context, functions.alloc_context);
}

}  // namespace rdmaquota::provider
