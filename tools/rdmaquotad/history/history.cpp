#include "tools/rdmaquotad/history/history.hpp"

#include <algorithm>

namespace rdmaquota {

void Ring::add(std::uint64_t time_s, std::uint64_t usage, std::uint64_t peak) {
    const auto number = std::max(time_s / shape_->seconds, newest_);
    const auto skipped = std::min<std::uint64_t>(number - newest_, spans_.size());
    for (std::uint64_t i = 0; i < skipped; ++i) at(number - i) = {};
    newest_ = number;
    auto& span = at(number);
    span = {usage, std::max(span.peak, peak)};
}

std::vector<Span> Ring::last(std::uint64_t now_s) const {
    const auto now = std::max(now_s / shape_->seconds, newest_);
    std::vector<Span> result(spans_.size());
    for (std::size_t i = 0; i < result.size(); ++i) {
        const auto back = result.size() - 1 - i;
        if (now < back || now - back > newest_ || newest_ - (now - back) >= spans_.size()) continue;
        result[i] = spans_[(now - back) % spans_.size()];
    }
    return result;
}

History::Series* History::series_of(const SeriesName& name) {
    const auto found = series_.find(name);
    if (found != series_.end()) return &found->second;
    if (series_.size() < most_series) return &series_[name];
    ++refused_;
    return nullptr;
}

void History::add(const SeriesName& name, std::uint64_t time_s, std::uint64_t usage, std::uint64_t all_time_peak) {
    if (usage == 0 && all_time_peak == 0 && !series_.contains(name)) return;
    auto* series = series_of(name);
    if (!series) return;
    const auto peak = all_time_peak > series->all_time_peak ? std::max(usage, all_time_peak) : usage;
    series->all_time_peak = all_time_peak;  // lower than before in another ledger
    for (auto& ring : series->rings) ring.add(time_s, usage, peak);
}

History::Series History::sum(const std::vector<const Series*>& parts, std::uint64_t now_s) {
    Series whole;
    for (std::size_t r = 0; r < ring_shapes.size(); ++r) {
        std::vector<Span> spans(ring_shapes[r].spans);
        for (const auto* part : parts) {
            const auto own = part->rings[r].last(now_s);
            for (std::size_t i = 0; i < spans.size(); ++i)
                if (own[i].usage != Span::unseen)
                    spans[i].usage = own[i].usage + (spans[i].usage == Span::unseen ? 0 : spans[i].usage);
        }
        const auto first = now_s - (spans.size() - 1) * ring_shapes[r].seconds;
        for (std::size_t i = 0; i < spans.size(); ++i)
            if (spans[i].usage != Span::unseen)
                whole.rings[r].add(first + i * ring_shapes[r].seconds, spans[i].usage, spans[i].usage);
    }
    return whole;
}

void History::restore(const SeriesName& name, std::size_t ring, std::uint64_t time_s, const Span& span) {
    if (auto* series = series_of(name)) series->rings.at(ring).add(time_s, span.usage, span.peak);
}

}  // namespace rdmaquota
