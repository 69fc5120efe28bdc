#include "provider/abi/libibverbs.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include <dlfcn.h>

#include <fmt/core.h>

namespace rdmaquota::provider {
namespace {

// `struct verbs_context` grows at its front only, so offsets are counted from its end. The field
// `query_port` was its first when PABI 34 began.
constexpr std::size_t from_end(std::size_t offset) noexcept { return sizeof(verbs_context) - offset; }
constexpr std::size_t base_bytes = from_end(offsetof(verbs_context, query_port));

constexpr std::size_t context_bytes(const Layout& layout) noexcept {
    return base_bytes + layout.front_words * sizeof(void*);
}

char* field(void* context, const Layout& layout, std::size_t offset) noexcept {
    return static_cast<char*>(context) + context_bytes(layout) - from_end(offset);
}

template <class T>
T read(const void* address) noexcept {
    T value;
    std::memcpy(&value, address, sizeof value);
    return value;
}

// Ops that verbs_set_ops also copies into the public struct, where the public header says they are.
struct Mirror {
    Op op;
    std::size_t offset;
};
#define RDMAQUOTA_MIRROR(name) \
    Mirror { Op::name, offsetof(verbs_context, name) }
#define RDMAQUOTA_CONTEXT_MIRROR(name) \
    Mirror { Op::name, offsetof(verbs_context, context.ops.name) }
constexpr std::array mirrors{
    RDMAQUOTA_MIRROR(advise_mr),
    RDMAQUOTA_MIRROR(alloc_dm),
    RDMAQUOTA_MIRROR(alloc_null_mr),
    RDMAQUOTA_MIRROR(alloc_parent_domain),
    RDMAQUOTA_MIRROR(alloc_td),
    RDMAQUOTA_MIRROR(attach_counters_point_flow),
    RDMAQUOTA_MIRROR(close_xrcd),
    RDMAQUOTA_MIRROR(create_counters),
    RDMAQUOTA_MIRROR(create_flow_action_esp),
    RDMAQUOTA_MIRROR(create_qp_ex),
    RDMAQUOTA_MIRROR(create_rwq_ind_table),
    RDMAQUOTA_MIRROR(create_srq_ex),
    RDMAQUOTA_MIRROR(create_wq),
    RDMAQUOTA_MIRROR(dealloc_td),
    RDMAQUOTA_MIRROR(destroy_counters),
    RDMAQUOTA_MIRROR(destroy_flow_action),
    RDMAQUOTA_MIRROR(destroy_rwq_ind_table),
    RDMAQUOTA_MIRROR(destroy_wq),
    RDMAQUOTA_MIRROR(free_dm),
    RDMAQUOTA_MIRROR(get_srq_num),
    RDMAQUOTA_MIRROR(modify_cq),
    RDMAQUOTA_MIRROR(modify_flow_action_esp),
    RDMAQUOTA_MIRROR(modify_qp_rate_limit),
    RDMAQUOTA_MIRROR(modify_wq),
    RDMAQUOTA_MIRROR(open_qp),
    RDMAQUOTA_MIRROR(open_xrcd),
    RDMAQUOTA_MIRROR(post_srq_ops),
    RDMAQUOTA_MIRROR(query_device_ex),
    RDMAQUOTA_MIRROR(query_rt_values),
    RDMAQUOTA_MIRROR(read_counters),
    RDMAQUOTA_MIRROR(reg_dm_mr),
    Mirror{Op::create_flow, offsetof(verbs_context, ibv_create_flow)},
    Mirror{Op::destroy_flow, offsetof(verbs_context, ibv_destroy_flow)},
    RDMAQUOTA_CONTEXT_MIRROR(alloc_mw),
    RDMAQUOTA_CONTEXT_MIRROR(bind_mw),
    RDMAQUOTA_CONTEXT_MIRROR(dealloc_mw),
    RDMAQUOTA_CONTEXT_MIRROR(poll_cq),
    RDMAQUOTA_CONTEXT_MIRROR(post_recv),
    RDMAQUOTA_CONTEXT_MIRROR(post_send),
    RDMAQUOTA_CONTEXT_MIRROR(post_srq_recv),
    RDMAQUOTA_CONTEXT_MIRROR(req_notify_cq),
};
#undef RDMAQUOTA_MIRROR
#undef RDMAQUOTA_CONTEXT_MIRROR

// Larger than any known layout, so that a layout that has grown is noticed and not overrun.
constexpr std::size_t sentinel_count = 192;
constexpr std::size_t dummy_words = 256;
using Dummy = std::array<std::uintptr_t, dummy_words>;

// A context and its ops for the library to fill in: 10 KiB, too much for the stack, which may have 16.
struct Probe {
    Dummy private_part{};
    Dummy context;
    std::array<std::uintptr_t, sentinel_count> ops;
};

constexpr std::uintptr_t sentinel(std::size_t index) noexcept { return 0x52510000 + index; }

Error bad_probe(unsigned pabi, const std::string& what) {
    return {fmt::format("libibverbs (private ABI {}) is not laid out as this version knows it: {}", pabi, what)};
}

std::size_t count_landed(const Dummy& private_part) {
    std::size_t count = 0;
    while (ops_offset / sizeof(void*) + count < dummy_words &&
           private_part[ops_offset / sizeof(void*) + count] == sentinel(count))
        ++count;
    return count;
}

std::size_t count_anywhere(const Dummy& private_part) {
    std::size_t count = 0;
    for (const auto word : private_part)
        if (word >= sentinel(0) && word < sentinel(sentinel_count)) ++count;
    return count;
}

bool is_known(unsigned pabi) noexcept {
    return std::any_of(layouts.begin(), layouts.end(), [pabi](const Layout& layout) { return layout.pabi == pabi; });
}

}  // namespace

Libibverbs::SetOps Libibverbs::set_ops_of(void* handle, unsigned pabi) {
    const auto version = fmt::format("IBVERBS_PRIVATE_{}", pabi);
    return reinterpret_cast<SetOps>(dlvsym(handle, "verbs_set_ops", version.c_str()));
}

Result<Libibverbs> Libibverbs::probe(unsigned pabi, SetOps set_ops) {
    if (!set_ops || !is_known(pabi))
        return Error{fmt::format("private ABI {} is unknown to this version of rdmaquota; update rdmaquota", pabi)};
    const auto dummies = std::make_unique<Probe>();
    auto& [private_part, context, ops] = *dummies;
    // Every word of the dummy is the pointer to the private part, wherever the library expects it.
    context.fill(reinterpret_cast<std::uintptr_t>(private_part.data()));
    for (std::size_t i = 0; i < ops.size(); ++i) ops[i] = sentinel(i);
    set_ops(context.data(), ops.data());

    const auto count = count_landed(private_part);
    if (count != count_anywhere(private_part)) return bad_probe(pabi, "ops outside of their table");
    for (const auto& layout : layouts) {
        if (layout.pabi != pabi || layout.ops != count) continue;
        for (const auto& mirror : mirrors) {
            const auto expected = sentinel(position(layout, mirror.op));
            if (read<std::uintptr_t>(field(context.data(), layout, mirror.offset)) != expected)
                return bad_probe(pabi, fmt::format("op {} is elsewhere",
                                                   op_table[static_cast<std::size_t>(mirror.op)].name));
        }
        return Libibverbs(layout, set_ops);
    }
    return bad_probe(pabi, fmt::format("it has {} ops", count));
}

Libibverbs::Libibverbs(Layout layout, SetOps set_ops) : layout_(layout), set_ops_(set_ops) {
    Dl_info own{};
    void* entry = nullptr;
    if (!dladdr1(reinterpret_cast<void*>(set_ops), &own, &entry, RTLD_DL_LINKMAP) || !entry) return;
    const auto* object = static_cast<const link_map*>(entry);
    base_ = object->l_addr;
    code_ = image_of(object).code;
    exports_ = exports_of(*object);
}

ibv_context* Libibverbs::public_context(void* verbs_context_start) const noexcept {
    const auto size = read<std::size_t>(field(verbs_context_start, layout_, offsetof(verbs_context, sz)));
    if (size != context_bytes(layout_)) return nullptr;
    return reinterpret_cast<ibv_context*>(field(verbs_context_start, layout_, offsetof(verbs_context, context)));
}

OpPointer Libibverbs::op(void* verbs_context_start, Op op) const noexcept {
    if (!present(layout_, op)) return nullptr;
    const auto* private_part = read<const char*>(field(verbs_context_start, layout_, offsetof(verbs_context, priv)));
    return read<OpPointer>(private_part + ops_offset + position(layout_, op) * sizeof(OpPointer));
}

// What stands in is libibverbs' own and has no exported name, unlike the ibv_cmd_ functions that providers use as ops.
bool Libibverbs::stands_in(OpPointer op) const noexcept {
    const auto offset = reinterpret_cast<std::uintptr_t>(op) - base_;
    return in(code_, op) && std::ranges::none_of(exports_, [offset](const auto& symbol) { return symbol.st_value == offset; });
}

void Libibverbs::set_ops(void* verbs_context_start, const OpPointer (&ops)[op_count]) const noexcept {
    std::array<OpPointer, sentinel_count> packed{};
    std::size_t count = 0;
    for (std::size_t i = 0; i < op_count; ++i)
        if (present(layout_, static_cast<Op>(i))) packed[count++] = ops[i];
    set_ops_(verbs_context_start, packed.data());
}

}  // namespace rdmaquota::provider
