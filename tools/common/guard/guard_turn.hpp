// Who gives rows of a kept guard to tenants: one process at a time, since two would give one row to two tenants. The lock is that of
// the directory where the guard is pinned, and ends with the process.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace rdmaquota {

class GuardTurn {
public:
    // Waits until no other process has it, or for `patience` at most: then nobody's turn is taken.
    explicit GuardTurn(const std::string& pins, std::optional<std::chrono::milliseconds> patience = std::nullopt);
    GuardTurn(const GuardTurn&) = delete;
    GuardTurn& operator=(const GuardTurn&) = delete;
    ~GuardTurn();

private:
    int fd_;
};

}  // namespace rdmaquota
