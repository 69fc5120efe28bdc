// What a ledger's gates say, and what is wanted beyond limits, read without mapping it (see ledger_copy.hpp: a mapping would
// let who may charge fill the node's memory). Each word is a moment's reading, cut to max_amount; nothing in it can be
// trusted.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "shm/ledger/layout.hpp"

namespace rdmaquota {

struct DeviceGates {
    std::string device;                                // not yet safe to print
    std::array<std::uint64_t, resource_count> gate;  // amounts
    std::array<std::uint64_t, limit_count> wanted;   // words with their tags: another word means that somebody asked again
};

// Of one ledger, again and again. Reads names of devices once for each file, and allocates nothing when they are known.
class GateReader {
public:
    // Of the ledger in directory `path`. True when something is not as it was at the last call. Without a ledger there are no
    // gates. About 5 us, most of it to open the file.
    bool read(const std::string& path);
    const std::vector<DeviceGates>& gates() const noexcept { return gates_; }

private:
    bool read_from(int fd);
    bool read_names(int fd);
    bool clear() noexcept;

    std::uint64_t inode_ = 0, device_ = 0;
    std::vector<DeviceGates> gates_;
};

// The amount in a demand word.
constexpr std::uint64_t wanted_amount(std::uint64_t word) noexcept { return word & gate_amount_mask; }

// The word that follows `before` when `amount` is asked for.
constexpr std::uint64_t next_demand(std::uint64_t before, std::uint64_t amount) noexcept {
    return (((before >> gate_tag_shift) + 1) << gate_tag_shift) | (amount > max_amount ? max_amount : amount);
}

}  // namespace rdmaquota
