// The private interface of a libibverbs in this process.
//
// No package ships the interface's header, and it differs by release. So it is written down as data
// (provider/abi/layout.hpp), and a probe on a dummy context checks the data before any real context is touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <infiniband/verbs.h>

#include "policy/result.hpp"
#include "provider/abi/layout.hpp"
#include "provider/adoption/image.hpp"

namespace rdmaquota::provider {

// The beginning of `struct verbs_device`, the same in every known PABI.
struct VerbsDevice {
    ibv_device device;
    const void* ops;  // the driver's struct verbs_device_ops
};

using OpPointer = void (*)();

class Libibverbs {
public:
    using SetOps = void (*)(void* context, const void* ops);

    // The verbs_set_ops that `handle` (of dlopen) or a library that it needs defines for this PABI; null where none does. That of a
    // driver is its own libibverbs'.
    static SetOps set_ops_of(void* handle, unsigned pabi);

    // Probes the layout of the copy to which this verbs_set_ops belongs. Errors: an unknown PABI, an unknown number of ops, an op at
    // another offset than the data says.
    static Result<Libibverbs> probe(unsigned pabi, SetOps set_ops);

    const Layout& layout() const noexcept { return layout_; }

    bool has(SetOps set_ops) const noexcept { return set_ops_ == set_ops; }

    // The public context at the end of what alloc_context returned; nullptr when the size is not that of this layout.
    ibv_context* public_context(void* verbs_context) const noexcept;

    // The op that the context has now.
    OpPointer op(void* verbs_context, Op op) const noexcept;

    // Whether libibverbs put it in place of an op that the provider lacks; it creates nothing and fails with EOPNOTSUPP.
    bool stands_in(OpPointer op) const noexcept;

    // `ops` is indexed by Op; null entries are left as they are.
    void set_ops(void* verbs_context, const OpPointer (&ops)[op_count]) const noexcept;

private:
    Libibverbs(Layout layout, SetOps set_ops);
    Layout layout_;
    SetOps set_ops_;
    // Of libibverbs; empty where the loader does not know it.
    std::uintptr_t base_ = 0;
    Ranges code_;
    std::span<const ElfW(Sym)> exports_;
};

}  // namespace rdmaquota::provider
