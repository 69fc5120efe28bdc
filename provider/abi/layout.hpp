// The private ABI (PABI) of libibverbs as data: which ops a release has and where they are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "provider/abi/op_list.hpp"

namespace rdmaquota::provider {

enum class Op : std::uint8_t {
#define RDMAQUOTA_ENUM(name, since, kind) name,
    RDMAQUOTA_OPS(RDMAQUOTA_ENUM)
#undef RDMAQUOTA_ENUM
};

// The underscores keep clear of macros and keywords.
enum class OpClass : std::uint8_t { charge_, uncharge_, resize_, import_, observe_, pass_ };

struct OpInfo {
    std::string_view name;
    double since;  // rdma-core release; 58.5: between 58 and 59
    OpClass kind;
};

inline constexpr std::array op_table{
#define RDMAQUOTA_ROW(name, since, kind) OpInfo{#name, since, OpClass::kind##_},
    RDMAQUOTA_OPS(RDMAQUOTA_ROW)
#undef RDMAQUOTA_ROW
};
inline constexpr std::size_t op_count = op_table.size();

// Releases with the same PABI number may differ: ops were added within 34 and 59. Vendors ship states between two releases, too
// (in rdma-core's history, after commits c2ba4c10b, d2391095e and 850459721). The number of ops, which the probe counts, tells them
// apart.
struct Layout {
    unsigned pabi;           // as in the symbol version IBVERBS_PRIVATE_<pabi>
    double release;          // the first rdma-core release with these ops
    std::size_t ops;         // number of private ops
    std::size_t front_words;  // pointers that struct verbs_context has gained at its front since 34
};

inline constexpr std::array<Layout, 11> layouts{{
    {34, 34, 73, 0},
    {34, 35, 75, 0},
    {34, 36, 76, 0},  // 36 – 56
    {57, 57, 76, 0},
    {57, 58.5, 78, 2},
    {57, 59, 79, 3},
    {59, 59, 79, 3},
    {59, 61.5, 80, 3},
    {59, 62, 81, 4},
    {64, 64, 83, 6},
    {65, 65, 93, 6},
}};

// Where the ops begin in libibverbs' private struct: after a bitmap of two words, a driver id and a flag (struct
// verbs_ex_private in libibverbs/ibverbs.h).
inline constexpr std::size_t ops_offset = 24;

constexpr bool present(const Layout& layout, Op op) noexcept {
    return op_table[static_cast<std::size_t>(op)].since <= layout.release;
}

// The index of `op` among the ops of `layout`; only for ops that are present.
constexpr std::size_t position(const Layout& layout, Op op) noexcept {
    std::size_t count = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(op); ++i)
        if (op_table[i].since <= layout.release) ++count;
    return count;
}

}  // namespace rdmaquota::provider
