#include "provider/adoption/image.hpp"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fmt/core.h>

namespace rdmaquota::provider {
namespace {

std::uintptr_t page_begin(std::uintptr_t address) noexcept {
    return address & ~(static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE)) - 1);
}

int protection(const Image& image, const void* address) noexcept {
    int result = PROT_READ;
    if (in(image.writable, address) && !in(image.relro, address)) result |= PROT_WRITE;
    if (in(image.code, address)) result |= PROT_EXEC;
    return result;
}

bool protect(std::uintptr_t page, int protection) noexcept {
    return mprotect(reinterpret_cast<void*>(page), static_cast<std::size_t>(sysconf(_SC_PAGESIZE)), protection) == 0;
}

struct Search {
    const link_map* object;
    Image image;
};

int collect(dl_phdr_info* info, std::size_t, void* argument) {
    auto& search = *static_cast<Search*>(argument);
    if (info->dlpi_addr != search.object->l_addr || std::strcmp(info->dlpi_name, search.object->l_name) != 0) return 0;
    search.image = image_of(*info);
    return 1;
}

}  // namespace

Image image_of(const dl_phdr_info& info) {
    Image image;
    for (int i = 0; i < info.dlpi_phnum; ++i) {
        const auto& header = info.dlpi_phdr[i];
        const Range range{info.dlpi_addr + header.p_vaddr, info.dlpi_addr + header.p_vaddr + header.p_memsz};
        // As the loader does: a last page on which other data begins stays writable.
        if (header.p_type == PT_GNU_RELRO) image.relro.push_back({page_begin(range.begin), page_begin(range.end)});
        if (header.p_type != PT_LOAD) continue;
        image.all.push_back(range);
        if (header.p_flags & PF_X) image.code.push_back(range);
        if (header.p_flags & PF_W) image.writable.push_back(range);
    }
    return image;
}

Image image_of(const link_map* object) {
    Search search{object, {}};
    dl_iterate_phdr(&collect, &search);
    return std::move(search.image);
}

const ElfW(Dyn)* dynamic_of(const dl_phdr_info& info) noexcept {
    for (int i = 0; i < info.dlpi_phnum; ++i)
        if (info.dlpi_phdr[i].p_type == PT_DYNAMIC)
            return reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
    return nullptr;
}

std::uintptr_t address_of(std::uintptr_t base, const ElfW(Dyn)& entry) noexcept {
    return entry.d_un.d_ptr < base ? base + entry.d_un.d_ptr : entry.d_un.d_ptr;
}

// The table is: the number of buckets, the index of the first exported symbol, the words of a filter, a number of bits; the filter;
// for each bucket its first symbol; for each exported symbol a word that is odd at the end of a bucket.
std::span<ElfW(Sym)> exports_of(const link_map& object) noexcept {
    ElfW(Sym)* symbols = nullptr;
    const std::uint32_t* table = nullptr;
    for (const auto* entry = object.l_ld; entry->d_tag != DT_NULL; ++entry) {
        if (entry->d_tag == DT_SYMTAB) symbols = reinterpret_cast<ElfW(Sym)*>(address_of(object.l_addr, *entry));
        if (entry->d_tag == DT_GNU_HASH) table = reinterpret_cast<const std::uint32_t*>(address_of(object.l_addr, *entry));
    }
    if (!symbols || !table) return {};
    const auto* buckets = table + 4 + table[2] * (sizeof(ElfW(Addr)) / sizeof *table);
    const auto* chains = buckets + table[0];
    const auto first = table[1];
    auto last = *std::max_element(buckets, chains);
    if (last < first) return {};  // all buckets are empty
    while ((chains[last - first] & 1) == 0) ++last;
    return {symbols + first, last - first + 1};
}

Result<void> Writing::write(const Image& image, void* address, std::uintptr_t word) {
    const auto page = page_begin(reinterpret_cast<std::uintptr_t>(address));
    const int before = protection(image, address);
    const auto is_open = [page](const Page& opened) { return opened.address == page; };
    if (!(before & PROT_WRITE) && std::none_of(opened_.begin(), opened_.end(), is_open)) {
        opened_.push_back({page, before});
        if (!protect(page, before | PROT_WRITE)) {
            opened_.pop_back();
            return Error{fmt::format("mprotect: {}", std::strerror(errno))};
        }
    }
    std::atomic_ref<std::uintptr_t>(*static_cast<std::uintptr_t*>(address)).store(word);
    return {};
}

Writing::~Writing() {
    for (const auto& page : opened_) protect(page.address, page.protection);
}

MemoryFile::~MemoryFile() {
    if (fd_ >= 0) close(fd_);
}

bool MemoryFile::write(void* address, const void* data, std::size_t size) noexcept {
    if (fd_ < 0) fd_ = open("/proc/self/mem", O_WRONLY | O_CLOEXEC);
    return fd_ >= 0 && pwrite(fd_, data, size, reinterpret_cast<off_t>(address)) == static_cast<ssize_t>(size);
}

}  // namespace rdmaquota::provider
