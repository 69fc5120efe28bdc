// Finding a real provider's `struct verbs_device_ops` and putting our functions into it.
//
// libibverbs keeps a pointer to that table in each device, and DV libraries compare it with their
// own (mlx5dv_is_supported), so the table must stay where it is: three functions are
// replaced in place. Providers export no symbol for it; it is found by its structure in the
// provider's own writable segments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <infiniband/verbs.h>

#include "policy/result.hpp"
#include "provider/adoption/image.hpp"

namespace rdmaquota::provider {

// As in libibverbs/driver.h; the same from PABI 34 to 65.
struct SysfsDevice {
    void* list[2];
    void* provider_data;
    const void* match;  // the entry of match_table that fits; null: none
    unsigned flags;
    char uverbs[64];
    dev_t cdev;
    char name[64];
};
// Without match_device, libibverbs takes a device whose `match` is not null; no provider of rdma-core has one.
struct DeviceOps {
    const char* name;
    std::uint32_t match_min_abi_version;
    std::uint32_t match_max_abi_version;
    const void* match_table;
    const void* static_providers;
    bool (*match_device)(SysfsDevice* device);
    void* (*alloc_context)(ibv_device* device, int cmd_fd, void* private_data);  // struct verbs_context*
    void* (*import_context)(ibv_device* device, int cmd_fd);                     // struct verbs_context*
    void* (*alloc_device)(void* sysfs_device);
    void (*uninit_device)(void* device);
};
static_assert(sizeof(DeviceOps) == 72);

// Image, path and base are the provider's.
struct FoundOps {
    DeviceOps* table;
    Image image;
    std::string path;
    std::uintptr_t base;
};

// Where the object behind a dlopen handle is loaded; 0 where the loader does not say.
std::uintptr_t load_address(void* handle) noexcept;

// `handle` is a dlopen handle. Exactly one structure must fit: a name that is an identifier, every
// pointer inside the same shared object, functions in its code. Errors say how many fitted.
Result<FoundOps> find_device_ops(void* handle);
Result<FoundOps> find_device_ops(Image image, std::string path, std::uintptr_t base);

// Those that are replaced, as they follow each other in the table.
struct DeviceFunctions {
    decltype(DeviceOps::match_device) match_device;
    decltype(DeviceOps::alloc_context) alloc_context;
    decltype(DeviceOps::import_context) import_context;
};
static_assert(offsetof(DeviceOps, import_context) == offsetof(DeviceOps, match_device) + 2 * sizeof(void*));

// Replaces them, through `memory` if that can be. A provider's own `match_device` stays, and `import_context` stays null where the
// provider has none. While libibverbs loads providers no device is there yet, so that no thread calls them.
Result<void> replace_functions(MemoryFile& memory, const FoundOps& found, DeviceFunctions functions);

}  // namespace rdmaquota::provider
