// The functions that fentry can attach to: those in the type information of the kernel, or of the modules that have them in
// one kernel or another. One thread.
#pragma once

#include <vector>

struct btf;

namespace rdmaquota {

class KernelFunctions {
public:
    KernelFunctions();
    ~KernelFunctions();
    KernelFunctions(const KernelFunctions&) = delete;

    bool any() const { return kernel_ != nullptr; }  // else the kernel has no type information
    bool has(const char* function) const;

private:
    btf* kernel_;
    std::vector<btf*> modules_;
};

}  // namespace rdmaquota
