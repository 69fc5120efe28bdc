#include "tools/common/process/elf_file.hpp"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>

#include <fmt/core.h>

namespace rdmaquota {
namespace {

// More than any real file has. A hostile one may claim any number.
constexpr std::size_t most_entries = 1024;  // program headers, dynamic entries, versions
constexpr std::size_t longest_text = 4096;  // as PATH_MAX

// Reads no more of a file than is asked for.
class FileReader {
public:
    explicit FileReader(const std::string& path) : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
    FileReader(FileReader&&) = delete;
    ~FileReader() {
        if (file_ >= 0) ::close(file_);
    }

    bool is_open() const { return file_ >= 0; }

    template <class T>
    std::optional<T> at(std::uint64_t offset) const {
        T value;
        return read(offset, &value, sizeof value) == sizeof value ? std::optional(value) : std::nullopt;
    }

    std::string text(std::uint64_t offset) const {
        std::string result(longest_text, '\0');
        result.resize(read(offset, result.data(), result.size()));
        return result.substr(0, result.find('\0'));
    }

private:
    std::size_t read(std::uint64_t offset, void* to, std::size_t size) const {
        if (offset > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max())) return 0;
        const auto got = ::pread(file_, to, size, static_cast<off_t>(offset));
        return got > 0 ? static_cast<std::size_t>(got) : 0;
    }

    int file_;
};

struct Dynamic {
    std::uint64_t strings = 0;
    std::uint64_t versions = 0;
    std::uint64_t version_count = 0;
    std::uint64_t soname = 0;
    std::uint64_t runpath = 0;
    std::vector<std::uint64_t> needed;
};

std::vector<Elf64_Phdr> program_headers(const FileReader& file, const Elf64_Ehdr& head) {
    std::vector<Elf64_Phdr> headers;
    for (std::size_t i = 0; i < std::min<std::size_t>(head.e_phnum, most_entries); ++i)
        if (const auto header = file.at<Elf64_Phdr>(head.e_phoff + i * sizeof(Elf64_Phdr))) headers.push_back(*header);
    return headers;
}

// Where the contents of an address in memory are in the file.
std::uint64_t offset_of(const std::vector<Elf64_Phdr>& headers, std::uint64_t address) {
    for (const auto& header : headers)
        if (header.p_type == PT_LOAD && address >= header.p_vaddr && address - header.p_vaddr < header.p_filesz)
            return header.p_offset + (address - header.p_vaddr);
    return 0;
}

Dynamic read_dynamic(const FileReader& file, const std::vector<Elf64_Phdr>& headers, const Elf64_Phdr& section) {
    Dynamic result;
    const auto entries = std::min<std::uint64_t>(section.p_filesz / sizeof(Elf64_Dyn), most_entries);
    for (std::uint64_t i = 0; i < entries; ++i) {
        const auto entry = file.at<Elf64_Dyn>(section.p_offset + i * sizeof(Elf64_Dyn));
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

std::vector<std::string> read_versions(const FileReader& file, const Dynamic& dynamic) {
    std::vector<std::string> names;
    auto at = dynamic.versions;
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(dynamic.version_count, most_entries); ++i) {
        const auto definition = file.at<Elf64_Verdef>(at);
        const auto name = definition ? file.at<Elf64_Verdaux>(at + definition->vd_aux) : std::nullopt;
        if (!name) break;
        if ((definition->vd_flags & VER_FLG_BASE) == 0) names.push_back(file.text(dynamic.strings + name->vda_name));
        if (definition->vd_next == 0) break;
        at += definition->vd_next;
    }
    return names;
}

ElfFile describe(const FileReader& file, const Elf64_Ehdr& head) {
    ElfFile result;
    const auto headers = program_headers(file, head);
    const auto of_type = [&headers](unsigned type) {
        return std::find_if(headers.begin(), headers.end(), [type](const auto& one) { return one.p_type == type; });
    };
    result.interpreted = of_type(PT_INTERP) != headers.end();
    const auto section = of_type(PT_DYNAMIC);
    result.dynamic = section != headers.end();
    if (!result.dynamic) return result;
    const auto dynamic = read_dynamic(file, headers, *section);
    const auto text = [&](std::uint64_t offset) {
        return offset == 0 ? std::string() : file.text(dynamic.strings + offset);
    };
    result.soname = text(dynamic.soname);
    result.runpath = text(dynamic.runpath);
    for (const auto needed : dynamic.needed) result.needed.push_back(text(needed));
    result.versions = read_versions(file, dynamic);
    return result;
}

}  // namespace

Result<ElfFile> read_elf(const std::string& path) {
    const FileReader file(path);
    if (!file.is_open()) return Error{fmt::format("{}: {}", path, std::strerror(errno))};
    const auto head = file.at<Elf64_Ehdr>(0);
    if (head && std::memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 && head->e_ident[EI_CLASS] == ELFCLASS64)
        return describe(file, *head);
    return Error{fmt::format("{}: no 64-bit ELF file", path)};
}

}  // namespace rdmaquota
