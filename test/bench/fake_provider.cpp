// A provider for a device that does not exist, so that libibverbs, the loading of providers and
// adoption can be measured on a machine without RDMA. A real libfake-rdmav34.so: libibverbs finds it
// through RDMAV_DRIVERS, and its device fake0 through SYSFS_PATH (see fake_device.sh). It makes
// protection domains, CQs, QPs and MRs out of nothing.
//
// The private interface is written down from facts, as in provider/abi/layout.hpp; PABI 34 only.
#include <cstdlib>

#include <fcntl.h>

#include "provider/adoption/device_table.hpp"
#include "provider/abi/layout.hpp"

using rdmaquota::provider::DeviceOps;
using rdmaquota::provider::Layout;
using rdmaquota::provider::Op;

extern "C" {
// libibverbs' own, versioned IBVERBS_PRIVATE_34.
void verbs_register_driver_34(const DeviceOps* ops);
void verbs_set_ops(verbs_context* context, const void* ops);
void* _verbs_init_and_alloc_context(ibv_device* device, int cmd_fd, std::size_t bytes, verbs_context* offset,
                                    std::uint32_t driver_id);
void verbs_uninit_context(verbs_context* context);
}

namespace {

using OpPointer = void (*)();

// One entry of a match table: a pattern for "rdma_device:N<name>", as VERBS_NAME_MATCH makes it.
struct Match {
    void* driver_data;
    const char* pattern;
    std::uint16_t vendor;
    std::uint16_t device;
    std::uint8_t kind;
};
constexpr std::uint8_t match_by_pattern = 2;
const Match matches[] = {{nullptr, "rdma_device:Nfake*", 0, 0, match_by_pattern}, {}};

// libibverbs keeps its own fields behind the public device: table, count, list, sysfs entry.
struct Device {
    ibv_device device;
    void* theirs[16];
};

// The C library's memory, so that no C++ library is loaded with this one.
template <class Object>
Object* make(ibv_context* context, std::size_t bytes = sizeof(Object)) noexcept {
    auto* object = static_cast<Object*>(std::calloc(1, bytes));
    if (object) object->context = context;
    return object;
}

template <class Object>
int destroy(Object* object) noexcept {
    std::free(object);
    return 0;
}

ibv_pd* alloc_pd(ibv_context* context) noexcept { return make<ibv_pd>(context); }
ibv_cq* create_cq(ibv_context* context, int, ibv_comp_channel*, int) noexcept { return make<ibv_cq>(context); }
ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr*) noexcept { return make<ibv_qp>(pd->context); }

// libibverbs' struct verbs_mr begins with the public one and adds a type and access flags.
ibv_mr* reg_mr(ibv_pd* pd, void*, std::size_t, std::uint64_t, int) noexcept {
    return make<ibv_mr>(pd->context, sizeof(ibv_mr) + 16);
}

void free_context(ibv_context* context) noexcept {
    auto* whole = verbs_get_ctx(context);
    verbs_uninit_context(whole);
    std::free(whole);
}

constexpr Layout layout{34, 36, 76, 0};

template <class Function>
void put(OpPointer* ops, Op op, Function* function) noexcept {
    ops[position(layout, op)] = reinterpret_cast<OpPointer>(function);
}

// verbs_init_context asks the device for ioctl support and takes ENOTTY, which /dev/null answers,
// for a no.
void* alloc_context(ibv_device* device, int cmd_fd, void*) noexcept {
    auto* context =
        static_cast<verbs_context*>(_verbs_init_and_alloc_context(device, cmd_fd, sizeof(verbs_context), nullptr, 0));
    if (!context) return nullptr;
    context->context.async_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    OpPointer ops[layout.ops] = {};
    put(ops, Op::alloc_pd, alloc_pd);
    put(ops, Op::dealloc_pd, destroy<ibv_pd>);
    put(ops, Op::create_cq, create_cq);
    put(ops, Op::destroy_cq, destroy<ibv_cq>);
    put(ops, Op::create_qp, create_qp);
    put(ops, Op::destroy_qp, destroy<ibv_qp>);
    put(ops, Op::reg_mr, reg_mr);
    put(ops, Op::dereg_mr, destroy<ibv_mr>);
    put(ops, Op::free_context, free_context);
    verbs_set_ops(context, ops);
    return context;
}

void* alloc_device(void*) noexcept { return std::calloc(1, sizeof(Device)); }
void uninit_device(void* device) noexcept { std::free(device); }

DeviceOps fake_ops{"fake", 1, 1, matches, nullptr, nullptr, alloc_context, nullptr, alloc_device, uninit_device};

__attribute__((constructor)) void start() { verbs_register_driver_34(&fake_ops); }

}  // namespace
