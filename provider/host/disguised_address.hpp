// An address as its complement, in which LeakSanitizer and valgrind see no pointer: they would take what the program
// has leaked for reachable by a table of ours.
#pragma once

#include <cstdint>

namespace rdmaquota::provider {

class DisguisedAddress {
public:
    constexpr DisguisedAddress(const void* object = nullptr) noexcept
        : complement_(object ? ~reinterpret_cast<std::uintptr_t>(object) : none) {}
    constexpr explicit operator bool() const noexcept { return complement_ != none; }
    constexpr bool operator==(DisguisedAddress other) const noexcept { return complement_ == other.complement_; }
    constexpr std::uintptr_t complement() const noexcept { return complement_; }
    // The address itself. Keep it nowhere.
    template <class Object>
    Object* shown() const noexcept {
        return *this ? reinterpret_cast<Object*>(~complement_) : nullptr;
    }

private:
    static constexpr std::uintptr_t none = ~std::uintptr_t{0};
    std::uintptr_t complement_;
};

}  // namespace rdmaquota::provider
