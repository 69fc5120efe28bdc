#include "provider/adoption/stubs.hpp"

#include <array>
#include <atomic>
#include <string>
#include <string_view>

#include <dlfcn.h>
#include <link.h>

namespace rdmaquota::provider {
namespace {

// More than a process has libibverbs. What does not fit stays loaded.
std::array<std::atomic<void*>, 8> stubs{};
std::atomic<bool> any = false;
constexpr int most_references = 16;

// Gives back each reference of the libibverbs that loaded it, which may know it by two names, with one of our own. Waits for a
// constructor that runs in another thread.
void unload(void* address) {
    Dl_info stub{};
    if (!dladdr(address, &stub)) return;
    const std::string file = stub.dli_fname;
    for (int references = 0; references < most_references && dladdr(address, &stub) && file == stub.dli_fname; ++references) {
        void* handle = dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD);
        if (!handle) return;
        dlclose(handle);
        dlclose(handle);
    }
}

int is_stub(dl_phdr_info* info, std::size_t, void*) {
    const std::string_view path = info->dlpi_name;
    return path.substr(path.rfind('/') + 1).starts_with("librdmaquota-rdmav") ? 1 : 0;
}

}  // namespace

bool has_stub() noexcept { return dl_iterate_phdr(&is_stub, nullptr) != 0; }

void note_stub(void* address) noexcept {
    for (auto& stub : stubs) {
        void* none = nullptr;
        if (!stub.compare_exchange_strong(none, address)) continue;
        any = true;
        return;
    }
}

void unload_stubs() noexcept {
    if (!any.load(std::memory_order_relaxed) || !any.exchange(false)) [[likely]]
        return;
    for (auto& stub : stubs)
        if (void* address = stub.exchange(nullptr)) try {
                unload(address);
            } catch (...) {  // no memory: it stays loaded
            }
}

}  // namespace rdmaquota::provider
