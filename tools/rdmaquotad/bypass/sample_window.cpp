#include "tools/rdmaquotad/bypass/sample_window.hpp"

#include <algorithm>

namespace rdmaquota {

void SampleWindow::begin(Clock::time_point now, bool same) {
    same_ = same ? same_ + 1 : 0;
    looks_[++count_ % for_leak] = {};
    if (now - began_ < lately) return;
    began_ = now;
    most_[1] = most_[0];
    most_[0] = {};
}

void SampleWindow::set(Resource resource, const Amounts& amounts) {
    looks_[count_ % for_leak][index(resource)] = amounts;
    auto& most = most_[0][index(resource)];
    most = {std::max(most.kernel, amounts.most_kernel), std::max(most.ledger, amounts.ledger)};
}

void SampleWindow::confirm() {
    looks_.fill(Row(looks_[count_ % for_leak]));
    most_ = {};
    same_ = for_leak;
}

std::uint64_t SampleWindow::least(Resource resource, std::size_t looks, std::uint64_t Amounts::* side) const {
    std::uint64_t least = UINT64_MAX;
    for (std::size_t back = 0; back < looks; ++back)
        least = std::min(least, looks_[(count_ + for_leak - back) % for_leak][index(resource)].*side);
    return least;
}

// Where nothing changed in these looks, what is now was all the while.
std::uint64_t SampleWindow::bypass(Resource resource) const {
    const auto i = index(resource);
    const auto ledger = bypass_at_rest() ? looks_[count_ % for_leak][i].ledger
                                                : std::max(most_[0][i].ledger, most_[1][i].ledger);
    return more(least(resource, for_bypass, &Amounts::least_kernel), ledger);
}

std::uint64_t SampleWindow::leak(Resource resource) const {
    const auto i = index(resource);
    const auto kernel = leak_at_rest() ? looks_[count_ % for_leak][i].most_kernel
                                              : std::max(most_[0][i].kernel, most_[1][i].kernel);
    return more(least(resource, for_leak, &Amounts::ledger), kernel);
}

}  // namespace rdmaquota
