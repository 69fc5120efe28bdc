// Words of memory that the kernel's program writes at any time.
#pragma once

namespace rdmaquota {

template <typename Word>
Word load_relaxed(const Word& word) noexcept {
    return __atomic_load_n(&word, __ATOMIC_RELAXED);
}

}  // namespace rdmaquota
