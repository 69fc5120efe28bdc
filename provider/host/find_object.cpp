#include "provider/host/find_object.hpp"

#include <cstdint>

#include <link.h>

namespace rdmaquota::provider {
#ifdef DLFO_STRUCT_HAS_EH_DBASE
namespace {

struct Search {
    std::uintptr_t address;
    dl_find_object* result;
};

bool is_in(std::uintptr_t address, std::uintptr_t begin, std::uintptr_t size) noexcept {
    return address >= begin && address - begin < size;
}

// Ends with 1 at the object that has the address, as dl_iterate_phdr wants it; -1 where that has no table.
int look(dl_phdr_info* info, std::size_t, void* data) noexcept {
    const auto& search = *static_cast<Search*>(data);
    std::uintptr_t begin = UINTPTR_MAX, end = 0, table = 0;
    bool found = false;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& header = info->dlpi_phdr[i];
        const auto at = info->dlpi_addr + header.p_vaddr;
        if (header.p_type == PT_GNU_EH_FRAME) table = at;
        if (header.p_type != PT_LOAD) continue;
        found |= is_in(search.address, at, header.p_memsz);
        begin = at < begin ? at : begin;
        end = at + header.p_memsz > end ? at + header.p_memsz : end;
    }
    if (!found) return 0;
    *search.result = {};
    search.result->dlfo_map_start = reinterpret_cast<void*>(begin);
    search.result->dlfo_map_end = reinterpret_cast<void*>(end);
    search.result->dlfo_eh_frame = reinterpret_cast<void*>(table);
    return table != 0 ? 1 : -1;
}

}  // namespace

int find_object(void* address, dl_find_object* result) noexcept {
    Search search{reinterpret_cast<std::uintptr_t>(address), result};
    return dl_iterate_phdr(look, &search) == 1 ? 0 : -1;
}

#endif
}  // namespace rdmaquota::provider
