// The identity of an RDMA device while it exists: the name of its uverbs device, "uverbs3" for /dev/infiniband/uverbs3, and its
// number, by which the kernel knows it. Its own name can be changed at any time.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace rdmaquota {

inline constexpr std::uint32_t no_uverbs = UINT32_MAX;

inline std::string uverbs_identity(std::uint32_t number) { return "uverbs" + std::to_string(number); }

// no_uverbs where it is not the name of a uverbs device, or of a port of one ("uverbs3/1").
inline std::uint32_t uverbs_number(std::string_view identity) noexcept {
    constexpr std::string_view prefix = "uverbs";
    std::uint32_t number = no_uverbs;
    if (identity.starts_with(prefix)) std::from_chars(identity.data() + prefix.size(), identity.data() + identity.size(), number);
    return number;
}

// A device or port as limits are looked up for it. By its number, where that is known, a selector's row is found also after the device
// was renamed.
struct DeviceKey {
    std::string_view name;
    std::uint32_t uverbs = no_uverbs;

    constexpr DeviceKey(std::string_view device, std::uint32_t number) noexcept : name(device), uverbs(number) {}
    template <class Text>
        requires std::convertible_to<const Text&, std::string_view>
    constexpr DeviceKey(const Text& device) noexcept : name(device) {}
};

}  // namespace rdmaquota
