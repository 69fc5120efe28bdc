// What each kind of verbs object costs.
//
// An object's cost is its kind and its size: the bytes, entries or requests that the program asked for. A receipt keeps
// these two, so that exactly what was charged is uncharged.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "shm/ledger/steps.hpp"

namespace rdmaquota::provider {

enum class Kind : std::uint8_t {
    nothing,  // the kernel makes no object
    object,   // one of the kernel's that has no resource of its own
    handle,   // an open device
    pd,
    cq,   // entries
    qp,   // requests, see requests()
    srq,  // requests
    mr,   // bytes
    mw,
    ah,
    xrcd,
    wq,  // requests
    rwq_ind,
    flow,
    counters,
    dm,    // bytes
    umem,  // bytes: pinned memory that is no MR
};

// A QP's size: the send and the receive requests, 32 bits each.
constexpr std::uint64_t requests(std::uint32_t send, std::uint32_t receive) noexcept {
    return std::uint64_t{receive} << 32 | send;
}

struct KindPart {
    enum class Amount : std::uint8_t { one, size, low_half, high_half };
    Resource resource;
    Amount amount;

    constexpr std::uint64_t of(std::uint64_t size) const noexcept {
        switch (amount) {
            case Amount::one: return 1;
            case Amount::size: return std::min(size, largest_charge);
            case Amount::low_half: return size & UINT32_MAX;
            case Amount::high_half: return size >> 32;
        }
        return 0;
    }
};

// What rates count of a call: it is one command, and may register memory, pinning this many bytes.
struct Command {
    bool registers = false;
    std::uint64_t bytes = 0;
};
constexpr Command command_of(Kind kind, std::uint64_t size) noexcept {
    if (kind != Kind::mr && kind != Kind::umem) return {};
    return {true, std::min(size, largest_charge)};
}

struct KindParts {
    std::size_t count = 0;
    KindPart part[Amounts::capacity] = {};

    constexpr KindParts& add(Resource resource, KindPart::Amount amount = KindPart::Amount::one) noexcept {
        part[count++] = {resource, amount};
        return *this;
    }
};

constexpr KindParts parts_of(Kind kind) noexcept {
    using enum KindPart::Amount;
    const auto one_of = [](Resource resource) { return KindParts{}.add(resource).add(Resource::hca_object); };
    switch (kind) {
        case Kind::nothing: return {};
        case Kind::object: return KindParts{}.add(Resource::hca_object);
        case Kind::handle: return KindParts{}.add(Resource::hca_handle);
        case Kind::pd: return one_of(Resource::pd);
        case Kind::cq: return one_of(Resource::cq).add(Resource::cqe, size);
        case Kind::qp: return one_of(Resource::qp).add(Resource::send_wr, low_half).add(Resource::recv_wr, high_half);
        case Kind::srq: return one_of(Resource::srq).add(Resource::srq_wr, size);
        case Kind::mr: return one_of(Resource::mr).add(Resource::mr_bytes, size);
        case Kind::mw: return one_of(Resource::mw);
        case Kind::ah: return one_of(Resource::ah);
        case Kind::xrcd: return one_of(Resource::xrcd);
        case Kind::wq: return one_of(Resource::wq).add(Resource::recv_wr, size);
        case Kind::rwq_ind: return one_of(Resource::rwq_ind);
        case Kind::flow: return one_of(Resource::flow);
        case Kind::counters: return one_of(Resource::counters);
        case Kind::dm: return one_of(Resource::dm).add(Resource::dm_bytes, size);
        case Kind::umem: return KindParts{}.add(Resource::hca_object).add(Resource::mr_bytes, size);
    }
    return {};
}

constexpr Amounts amounts_of(Kind kind, std::uint64_t size) noexcept {
    Amounts amounts;
    const auto parts = parts_of(kind);
    for (std::size_t i = 0; i < parts.count; ++i) amounts.add(parts.part[i].resource, parts.part[i].of(size));
    return amounts;
}

// Calls `function` with the parts of a kind that is known at compile time, each a Part (shm/ledger/steps.hpp).
template <Kind kind, class Function>
[[gnu::always_inline]] inline auto with_parts(std::uint64_t size, Function function) {
    constexpr auto parts = parts_of(kind);
    return [&]<std::size_t... i>(std::index_sequence<i...>) __attribute__((always_inline)) {
        return function(Part<parts.part[i].resource>{parts.part[i].of(size)}...);
    }(std::make_index_sequence<parts.count>());
}

// Calls `function` with the kind as a template's argument.
template <class Function>
decltype(auto) with_kind(Kind kind, Function function) {
    switch (kind) {
        case Kind::nothing: break;
        case Kind::object: return function.template operator()<Kind::object>();
        case Kind::handle: return function.template operator()<Kind::handle>();
        case Kind::pd: return function.template operator()<Kind::pd>();
        case Kind::cq: return function.template operator()<Kind::cq>();
        case Kind::qp: return function.template operator()<Kind::qp>();
        case Kind::srq: return function.template operator()<Kind::srq>();
        case Kind::mr: return function.template operator()<Kind::mr>();
        case Kind::mw: return function.template operator()<Kind::mw>();
        case Kind::ah: return function.template operator()<Kind::ah>();
        case Kind::xrcd: return function.template operator()<Kind::xrcd>();
        case Kind::wq: return function.template operator()<Kind::wq>();
        case Kind::rwq_ind: return function.template operator()<Kind::rwq_ind>();
        case Kind::flow: return function.template operator()<Kind::flow>();
        case Kind::counters: return function.template operator()<Kind::counters>();
        case Kind::dm: return function.template operator()<Kind::dm>();
        case Kind::umem: return function.template operator()<Kind::umem>();
    }
    return function.template operator()<Kind::nothing>();
}

}  // namespace rdmaquota::provider
