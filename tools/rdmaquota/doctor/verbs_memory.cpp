#include "tools/rdmaquota/doctor/verbs_memory.hpp"

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "tools/rdmaquota/doctor/heap_scan.hpp"

namespace rdmaquota {
namespace {

// Indices into a device table, in words.
enum TableWord : std::size_t {
    name_word,
    abi_word,
    match_table_word,
    alloc_context_word = 5,
    alloc_device_word = 7,
    table_words = 9
};

bool is_ours(const Mapped* mapping) {
    return mapping != nullptr && mapping->executable &&
           mapping->file.substr(mapping->file.rfind('/') + 1).starts_with("librdmaquota");
}

bool in_code_of(const ProcessMemory& memory, std::uint64_t address, const std::string& file) {
    const auto* mapping = memory.at(address);
    return mapping != nullptr && mapping->executable && mapping->file == file;
}

bool in_file(const ProcessMemory& memory, std::uint64_t address, const std::string& file) {
    const auto* mapping = memory.at(address);
    return mapping != nullptr && mapping->file == file;
}

bool is_identifier(const std::string& text) {
    return !text.empty() && text.size() < 32 && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    });
}

// Real ABI numbers are below 20; some providers accept any higher one.
bool are_abi_versions(std::uint64_t word) {
    const auto lowest = static_cast<std::uint32_t>(word);
    const auto highest = static_cast<std::uint32_t>(word >> 32);
    return lowest < 1000 && lowest <= highest && (highest < 1000 || highest == 0x7fffffff);
}

// Whether `table` is a device table of `file`, whoever opens its devices.
bool is_table(const ProcessMemory& memory, const std::uint64_t* table, const std::string& file) {
    const auto* opener = memory.at(table[alloc_context_word]);
    return are_abi_versions(table[abi_word]) && in_file(memory, table[name_word], file) &&
           in_file(memory, table[match_table_word], file) && in_code_of(memory, table[alloc_device_word], file) &&
           (is_ours(opener) || in_code_of(memory, table[alloc_context_word], file)) &&
           is_identifier(memory.text(table[name_word], 32));
}

// A hostile process may fill its memory with what looks like devices and contexts.
constexpr std::size_t most_looked_at = 1 << 16;
constexpr std::size_t most_devices = 16;
// Far more than any provider's data, though not than any mapping.
constexpr std::uint64_t most_of_library = std::uint64_t{16} << 20;

std::vector<std::uint64_t> find_devices(const ProcessMemory& memory, const std::string& name, const std::string& node) {
    std::uint64_t first = 0;
    std::memcpy(&first, node.data(), std::min(sizeof first, node.size()));
    std::vector<std::uint64_t> found;
    std::size_t looked_at = 0;
    scan_heap(memory, [&](std::uint64_t address, std::uint64_t word) {
        if (word != first) return true;
        const auto device = address - offsetof(ibv_device, dev_name);
        if (memory.text(device + offsetof(ibv_device, dev_name), IBV_SYSFS_NAME_MAX) == node &&
            memory.text(device + offsetof(ibv_device, name), IBV_SYSFS_NAME_MAX) == name)
            found.push_back(device);
        return ++looked_at < most_looked_at && found.size() < most_devices;
    });
    return found;
}

// libibverbs has marked every context so since 2011; other things that point to a device lack the mark.
bool is_context(const ProcessMemory& memory, std::uint64_t context) {
    const auto mark = memory.words(context + offsetof(ibv_context, abi_compat), 1);
    return !mark.empty() && mark[0] == UINTPTR_MAX;
}

// Releases newer than the header put up to this much more in front.
constexpr std::uint64_t front_growth = 8 * sizeof(void*);
constexpr std::uint64_t bytes_before = offsetof(verbs_context, context) + front_growth;

bool leads_to_us(const ProcessMemory& memory, std::uint64_t context) {
    const auto* mapping = memory.at(context);
    if (mapping == nullptr) return false;
    // A large context has a mapping of its own and begins it.
    const auto before = std::min(bytes_before, context - mapping->begin);
    const auto words = memory.words(context - before, (before + offsetof(ibv_context, cmd_fd)) / 8);
    return std::any_of(words.begin(), words.end(), [&](std::uint64_t word) { return is_ours(memory.at(word)); });
}

OpenContext describe(const ProcessMemory& memory, std::uint64_t device, std::uint64_t context, int descriptor) {
    const auto ops = memory.words(device + sizeof(ibv_device), 1);
    const auto table = ops.empty() ? std::vector<std::uint64_t>() : memory.words(ops[0], table_words);
    const auto* holder = ops.empty() ? nullptr : memory.at(ops[0]);
    return {descriptor, holder == nullptr ? "" : holder->file,
            table.size() == table_words && is_ours(memory.at(table[alloc_context_word])), leads_to_us(memory, context)};
}

}  // namespace

Adoption adoption_of(const ProcessMemory& memory, const std::string& file) {
    bool loaded = false;
    std::size_t adopted = 0;
    std::size_t others = 0;
    auto left = most_of_library;
    for (const auto& mapping : memory.maps()) {
        if (mapping.file != file) continue;
        loaded = true;
        if (mapping.executable) continue;
        const auto bytes = std::min(mapping.end - mapping.begin, left);
        left -= bytes;
        const auto words = memory.words(mapping.begin, bytes / 8);
        for (std::size_t i = 0; i + table_words <= words.size(); ++i)
            if (is_table(memory, &words[i], file))
                ++(is_ours(memory.at(words[i + alloc_context_word])) ? adopted : others);
    }
    if (!loaded) return Adoption::not_loaded;
    if (adopted + others != 1) return Adoption::no_table;
    return adopted == 1 ? Adoption::adopted : Adoption::left_alone;
}

std::vector<OpenContext> open_contexts(const ProcessMemory& memory, const std::string& name, const std::string& node) {
    std::vector<OpenContext> found;
    const auto devices = find_devices(memory, name, node);
    std::size_t looked_at = 0;
    scan_heap(memory, [&](std::uint64_t address, std::uint64_t word) {
        if (std::find(devices.begin(), devices.end(), word) == devices.end()) return true;
        const auto context = address - offsetof(ibv_context, device);
        const auto descriptors = memory.words(context + offsetof(ibv_context, cmd_fd), 1);
        if (!descriptors.empty() && is_context(memory, context))
            found.push_back(
                describe(memory, word, context, static_cast<int>(static_cast<std::uint32_t>(descriptors[0]))));
        return ++looked_at < most_looked_at;
    });
    return found;
}

}  // namespace rdmaquota
