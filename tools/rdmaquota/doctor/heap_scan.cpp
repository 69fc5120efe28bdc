#include "tools/rdmaquota/doctor/heap_scan.hpp"

#include <algorithm>

namespace rdmaquota {
namespace {

constexpr std::uint64_t most_contents = std::uint64_t{1} << 30;
constexpr std::uint64_t most_of_one = std::uint64_t{1} << 36;
constexpr std::uint64_t most_of_all = std::uint64_t{1} << 42;
constexpr std::size_t pages_at_once = 1 << 14;  // asked for in one call
constexpr std::ptrdiff_t pages_read = 1 << 8;  // in one call

bool is_heap(const Mapped& mapping) {
    return mapping.writable && !mapping.shared &&
           (mapping.file.empty() || mapping.file == "[heap]" || mapping.file.starts_with("[anon"));
}

class HeapScan {
public:
    using See = std::function<bool(std::uint64_t, std::uint64_t)>;
    HeapScan(const ProcessMemory& memory, const See& see) : memory_(memory), see_(see) {}

    // False when the scan is over.
    bool mapping(const Mapped& mapping) {
        const auto bytes = std::min({mapping.end - mapping.begin, most_of_one, addresses_left_});
        addresses_left_ -= bytes;
        const auto end = mapping.begin + bytes;
        for (auto at = mapping.begin; at < end; at += pages_at_once * page_bytes) {
            const auto count = std::min<std::uint64_t>(pages_at_once, (end - at) / page_bytes);
            if (!pages(at, memory_.used_pages(at, count))) return false;
        }
        return addresses_left_ > 0;
    }

private:
    bool pages(std::uint64_t address, const std::vector<bool>& used) {
        for (auto begin = used.begin(); (begin = std::find(begin, used.end(), true)) != used.end();) {
            const auto end = std::find(begin, begin + std::min<std::ptrdiff_t>(used.end() - begin, pages_read), false);
            const auto first = static_cast<std::uint64_t>(begin - used.begin());
            const auto count = static_cast<std::uint64_t>(end - begin);
            if (!words(address + first * page_bytes, count * page_bytes)) return false;
            begin = end;
        }
        return true;
    }

    bool words(std::uint64_t address, std::uint64_t bytes) {
        if (bytes > contents_left_) return false;
        contents_left_ -= bytes;
        for (const auto word : memory_.words(address, bytes / sizeof(std::uint64_t))) {
            if (!see_(address, word)) return false;
            address += sizeof word;
        }
        return true;
    }

    const ProcessMemory& memory_;
    const See& see_;
    std::uint64_t addresses_left_ = most_of_all;
    std::uint64_t contents_left_ = most_contents;
};

}  // namespace

void scan_heap(const ProcessMemory& memory, const std::function<bool(std::uint64_t, std::uint64_t)>& see) {
    HeapScan scan(memory, see);
    for (const auto& mapping : memory.maps())
        if (is_heap(mapping) && !scan.mapping(mapping)) return;
}

}  // namespace rdmaquota
