#include "tools/rdmaquota/doctor/elf_file.hpp"

#include <elf.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include <fmt/core.h>

#include "tools/common/file_text.hpp"

namespace rdmaquota {
namespace {

// The bytes of a file, read with bounds.
class Bytes {
public:
    explicit Bytes(std::string bytes) : bytes_(std::move(bytes)) {}

    template <class T>
    std::optional<T> at(std::uint64_t offset) const {
        if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return std::nullopt;
        T value;
        std::memcpy(&value, bytes_.data() + offset, sizeof value);
        return value;
    }

    std::string text(std::uint64_t offset) const {
        return offset < bytes_.size() ? std::string(bytes_.c_str() + offset) : std::string();
    }

private:
    std::string bytes_;
};

struct Dynamic {
    std::uint64_t strings = 0;
    std::uint64_t versions = 0;
    std::uint64_t version_count = 0;
    std::uint64_t soname = 0;
    std::uint64_t runpath = 0;
    std::vector<std::uint64_t> needed;
};

std::vector<Elf64_Phdr> program_headers(const Bytes& bytes, const Elf64_Ehdr& head) {
    std::vector<Elf64_Phdr> headers;
    for (unsigned i = 0; i < head.e_phnum; ++i)
        if (const auto header = bytes.at<Elf64_Phdr>(head.e_phoff + i * sizeof(Elf64_Phdr))) headers.push_back(*header);
    return headers;
}

// The place in the file of an address in memory.
std::uint64_t offset_of(const std::vector<Elf64_Phdr>& headers, std::uint64_t address) {
    for (const auto& header : headers)
        if (header.p_type == PT_LOAD && address >= header.p_vaddr && address - header.p_vaddr < header.p_filesz)
            return header.p_offset + (address - header.p_vaddr);
    return 0;
}

Dynamic read_dynamic(const Bytes& bytes, const std::vector<Elf64_Phdr>& headers, const Elf64_Phdr& place) {
    Dynamic result;
    for (std::uint64_t at = 0; at + sizeof(Elf64_Dyn) <= place.p_filesz; at += sizeof(Elf64_Dyn)) {
        const auto entry = bytes.at<Elf64_Dyn>(place.p_offset + at);
        if (!entry || entry->d_tag == DT_NULL) break;
        switch (entry->d_tag) {
            case DT_STRTAB:
                result.strings = offset_of(headers, entry->d_un.d_ptr);
                break;
            case DT_VERDEF:
                result.versions = offset_of(headers, entry->d_un.d_ptr);
                break;
            case DT_VERDEFNUM:
                result.version_count = entry->d_un.d_val;
                break;
            case DT_SONAME:
                result.soname = entry->d_un.d_val;
                break;
            case DT_RPATH:
            case DT_RUNPATH:
                result.runpath = entry->d_un.d_val;
                break;
            case DT_NEEDED:
                result.needed.push_back(entry->d_un.d_val);
                break;
            default:
                break;
        }
    }
    return result;
}

std::vector<std::string> read_versions(const Bytes& bytes, const Dynamic& dynamic) {
    std::vector<std::string> names;
    auto at = dynamic.versions;
    for (std::uint64_t i = 0; i < dynamic.version_count; ++i) {
        const auto definition = bytes.at<Elf64_Verdef>(at);
        const auto name = definition ? bytes.at<Elf64_Verdaux>(at + definition->vd_aux) : std::nullopt;
        if (!name) break;
        if ((definition->vd_flags & VER_FLG_BASE) == 0) names.push_back(bytes.text(dynamic.strings + name->vda_name));
        if (definition->vd_next == 0) break;
        at += definition->vd_next;
    }
    return names;
}

ElfFile describe(const Bytes& bytes, const Elf64_Ehdr& head) {
    ElfFile file;
    const auto headers = program_headers(bytes, head);
    for (const auto& header : headers) {
        if (header.p_type == PT_INTERP) file.interpreted = true;
        if (header.p_type != PT_DYNAMIC) continue;
        file.dynamic = true;
        const auto dynamic = read_dynamic(bytes, headers, header);
        const auto text = [&](std::uint64_t offset) {
            return offset == 0 ? std::string() : bytes.text(dynamic.strings + offset);
        };
        file.soname = text(dynamic.soname);
        file.runpath = text(dynamic.runpath);
        for (const auto needed : dynamic.needed) file.needed.push_back(text(needed));
        file.versions = read_versions(bytes, dynamic);
    }
    return file;
}

}  // namespace

Result<ElfFile> read_elf(const std::string& path) {
    const Bytes bytes(file_text(path));
    const auto head = bytes.at<Elf64_Ehdr>(0);
    if (head && std::memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 && head->e_ident[EI_CLASS] == ELFCLASS64)
        return describe(bytes, *head);
    const bool readable = access(path.c_str(), R_OK) == 0;
    return Error{fmt::format("{}: {}", path, readable ? "no 64-bit ELF file" : std::strerror(errno))};
}

}  // namespace rdmaquota
