#include "provider/dv/redirect.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include <dlfcn.h>
#include <link.h>

#include "provider/adoption/image.hpp"

namespace rdmaquota::provider {
namespace {

using Symbol = ElfW(Sym);
using Relocation = ElfW(Rela);

// A function that the library has, and its entry in the library's symbol table.
struct Function {
    Symbol* symbol;
    std::uintptr_t real;
    std::uintptr_t replacement;
};

struct Library {
    const link_map* object = nullptr;
    const char* name = nullptr;  // by which others are linked to it
    bool has_users = false;      // objects that are
    Image image;
    std::vector<Function> functions;
    std::uintptr_t lowest = 0, highest = 0;  // of their addresses
    Result<void> done;  // the first thing that failed
    Writing writing;

    void write(const Image& where, void* address, std::uintptr_t word) {
        if (auto written = writing.write(where, address, word); !written && done) done = std::move(written);
    }
};

// What the dynamic section has of this kind; null for nothing.
const ElfW(Dyn)* entry_of(const ElfW(Dyn)* dynamic, ElfW(Sxword) tag) noexcept {
    while (dynamic && dynamic->d_tag != tag) dynamic = dynamic->d_tag == DT_NULL ? nullptr : dynamic + 1;
    return dynamic;
}

const char* strings_of(std::uintptr_t base, const ElfW(Dyn)* dynamic) noexcept {
    const auto* strings = entry_of(dynamic, DT_STRTAB);
    return strings ? reinterpret_cast<const char*>(address_of(base, *strings)) : nullptr;
}

Symbol* symbol_at(const link_map& object, std::span<Symbol> symbols, const void* address, const char* name) {
    const char* strings = strings_of(object.l_addr, object.l_ld);
    for (auto& symbol : symbols)
        if (object.l_addr + symbol.st_value == reinterpret_cast<std::uintptr_t>(address) && std::strcmp(strings + symbol.st_name, name) == 0)
            return &symbol;
    return nullptr;
}

std::vector<Function> find_functions(void* handle, const Library& library, std::span<Redirection> table) {
    std::vector<Function> found;
    const auto symbols = exports_of(*library.object);
    for (auto& row : table) {
        void* real = dlvsym(handle, row.name, row.version);
        Symbol* symbol = real && in(library.image.code, real) ? symbol_at(*library.object, symbols, real, row.name) : nullptr;
        if (!symbol) continue;
        row.real = real;
        found.push_back(
            {symbol, reinterpret_cast<std::uintptr_t>(real), reinterpret_cast<std::uintptr_t>(row.replacement)});
    }
    return found;
}

// Where an object's dynamic section says its relocations are.
struct Relocations {
    const Symbol* symbols = nullptr;
    std::uintptr_t tables[2] = {};  // of data and of function calls
    std::size_t bytes[2] = {};
};

Relocations relocations_of(const dl_phdr_info& info) noexcept {
    Relocations result;
    for (const auto* entry = dynamic_of(info); entry && entry->d_tag != DT_NULL; ++entry) switch (entry->d_tag) {
            case DT_SYMTAB: result.symbols = reinterpret_cast<const Symbol*>(address_of(info.dlpi_addr, *entry)); break;
            case DT_RELA: result.tables[0] = address_of(info.dlpi_addr, *entry); break;
            case DT_RELASZ: result.bytes[0] = entry->d_un.d_val; break;
            case DT_JMPREL: result.tables[1] = address_of(info.dlpi_addr, *entry); break;
            case DT_PLTRELSZ: result.bytes[1] = entry->d_un.d_val; break;
            default: break;
        }
    return result;
}

// Calls `visit(slot, symbol)` for each word of the object that the loader fills with a symbol's address.
template <class Visit>
void each_slot(const dl_phdr_info& info, Visit visit) {
    const auto dynamic = relocations_of(info);
    for (int i = 0; dynamic.symbols && i < 2; ++i) {
        const auto* relocations = reinterpret_cast<const Relocation*>(dynamic.tables[i]);
        for (std::size_t n = 0; relocations && n < dynamic.bytes[i] / sizeof(Relocation); ++n) {
            const auto address = info.dlpi_addr + relocations[n].r_offset;
            const auto symbol = ELF64_R_SYM(relocations[n].r_info);
            if (symbol != 0 && address % sizeof(void*) == 0)
                visit(reinterpret_cast<std::uintptr_t*>(address), dynamic.symbols + symbol);
        }
    }
}

// The library's calls of itself go on to its own functions, also those that it would bind at their first use.
void bind_own(Library& library, const dl_phdr_info& info) {
    each_slot(info, [&](std::uintptr_t* slot, const Symbol* symbol) {
        for (const auto& function : library.functions)
            if (function.symbol == symbol && *slot != function.real && in(library.image.all, reinterpret_cast<void*>(*slot)))
                library.write(library.image, slot, function.real);
    });
}

void find_user(Library& library, const dl_phdr_info& info) {
    const auto* needed = dynamic_of(info);
    const char* strings = strings_of(info.dlpi_addr, needed);
    while (strings && library.name && (needed = entry_of(needed, DT_NEEDED)))
        library.has_users |= std::strcmp(strings + needed++->d_un.d_val, library.name) == 0;
}

void rebind(Library& library, const dl_phdr_info& info) {
    std::vector<std::pair<std::uintptr_t*, std::uintptr_t>> changes;
    each_slot(info, [&](std::uintptr_t* slot, const Symbol*) {
        if (*slot - library.lowest > library.highest - library.lowest) [[likely]]
            return;
        for (const auto& function : library.functions)
            if (*slot == function.real) changes.emplace_back(slot, function.replacement);
    });
    if (changes.empty()) return;
    const auto image = image_of(info);
    for (const auto& [slot, replacement] : changes) library.write(image, slot, replacement);
}

template <void (*act)(Library&, const dl_phdr_info&), bool itself>
int visit_object(dl_phdr_info* info, std::size_t, void* argument) {
    auto& library = *static_cast<Library*>(argument);
    const bool is_library = info->dlpi_addr == library.object->l_addr;
    if (is_library == itself) act(library, *info);
    return 0;
}

// All at once, where no thread looks for them: each write through the file costs the kernel a page.
bool change_symbols_in(MemoryFile& memory, const Library& library) {
    const auto [first, last] = std::ranges::minmax(library.functions, {}, &Function::symbol);
    std::vector<Symbol> symbols(first.symbol, last.symbol + 1);
    for (const auto& function : library.functions)
        symbols[static_cast<std::size_t>(function.symbol - first.symbol)].st_value += function.replacement - function.real;
    return memory.write(first.symbol, symbols.data(), symbols.size() * sizeof(Symbol));
}

void change_symbols(Library& library) {
    for (const auto& function : library.functions) {
        if (!library.done) return;
        library.write(library.image, &function.symbol->st_value,
                      function.symbol->st_value + (function.replacement - function.real));
    }
}

}  // namespace

Result<void> redirect(MemoryFile& memory, void* handle, std::span<Redirection> table) {
    Library library;
    link_map* object = nullptr;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &object) != 0 || !object) return Error{"the loader does not say where it is"};
    library.object = object;
    library.image = image_of(object);
    if (const auto* name = entry_of(object->l_ld, DT_SONAME))
        library.name = strings_of(object->l_addr, object->l_ld) + name->d_un.d_val;
    library.functions = find_functions(handle, library, table);
    if (library.functions.empty()) return {};
    const auto [lowest, highest] = std::ranges::minmax(library.functions, {}, &Function::real);
    library.lowest = lowest.real;
    library.highest = highest.real;
    dl_iterate_phdr(visit_object<find_user, false>, &library);
    dl_iterate_phdr(visit_object<bind_own, true>, &library);
    if (library.has_users || !library.done || !change_symbols_in(memory, library)) change_symbols(library);
    if (library.done && library.has_users) dl_iterate_phdr(visit_object<rebind, false>, &library);
    return library.done;
}

}  // namespace rdmaquota::provider
