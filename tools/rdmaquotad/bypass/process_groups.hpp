// Processes that share device contexts or owner slots, and so are compared together. A process may use contexts that
// another opened, and that one a third's: all of them have the same representative (a union-find).
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

namespace rdmaquota {

class ProcessGroups {
public:
    void join(std::uint32_t one, std::uint32_t other) {
        const auto a = of(one), b = of(other);
        parent_[std::max(a, b)] = std::min(a, b);
    }
    std::uint32_t of(std::uint32_t pid) {
        const auto found = parent_.try_emplace(pid, pid).first->second;
        return found == pid ? pid : parent_[pid] = of(found);
    }
    std::set<std::uint32_t> pids() const {
        std::set<std::uint32_t> all;
        for (const auto& [pid, parent] : parent_) all.insert(pid);
        return all;
    }

private:
    std::map<std::uint32_t, std::uint32_t> parent_;
};

}  // namespace rdmaquota
