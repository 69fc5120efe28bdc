#include "tools/rdmaquotad/kernel/kernel_functions.hpp"

#include <algorithm>

#include <bpf/btf.h>

namespace rdmaquota {

KernelFunctions::KernelFunctions() : kernel_(btf__load_vmlinux_btf()) {
    if (!kernel_) return;
    for (const char* module : {"ib_core", "ib_uverbs", "ib_uverbs_support"})
        if (auto* types = btf__load_module_btf(module, kernel_)) modules_.push_back(types);
}

KernelFunctions::~KernelFunctions() {
    for (auto* types : modules_) btf__free(types);
    btf__free(kernel_);
}

// A module's types include the kernel's own.
bool KernelFunctions::has(const char* function) const {
    const auto in = [function](const btf* types) { return btf__find_by_name_kind(types, function, BTF_KIND_FUNC) > 0; };
    return (any() && in(kernel_)) || std::any_of(modules_.begin(), modules_.end(), in);
}

}  // namespace rdmaquota
