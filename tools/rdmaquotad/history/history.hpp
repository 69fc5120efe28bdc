// History of usage: for each tenant, device and resource three rings of fixed size, of seconds, minutes and hours, with
// the usage at the end of each span and the peak within it.
//
// Memory is bounded: at most `most_series` of about 6.5 KB each, and only for resources that were ever used.
// history_file.hpp keeps the history over a restart.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "policy/resource.hpp"

namespace rdmaquota {

// One span of a ring. `usage` is `unseen` while nobody looked.
struct Span {
    static constexpr std::uint64_t unseen = UINT64_MAX;
    std::uint64_t usage = unseen;
    std::uint64_t peak = 0;
};

struct RingShape {
    const char* name;
    std::uint64_t seconds;  // of one span
    std::size_t spans;
};
inline constexpr std::array<RingShape, 3> ring_shapes{
    {{"seconds", 1, 120}, {"minutes", 60, 120}, {"hours", 3600, 168}}};

// The last `spans` spans of one length.
class Ring {
public:
    explicit Ring(const RingShape& shape) : shape_(&shape), spans_(shape.spans) {}

    // Times only go forward; an older one counts as the newest.
    void add(std::uint64_t time_s, std::uint64_t usage, std::uint64_t peak);
    // Oldest first, up to the span that `now_s` is in.
    std::vector<Span> last(std::uint64_t now_s) const;
    const RingShape& shape() const noexcept { return *shape_; }

private:
    Span& at(std::uint64_t number) { return spans_[number % spans_.size()]; }

    const RingShape* shape_;
    std::vector<Span> spans_;
    std::uint64_t newest_ = 0;  // time divided by the span; 0: nothing yet
};

struct SeriesName {
    std::string tenant;
    std::string device;
    Resource resource{};
    auto operator<=>(const SeriesName&) const = default;
};

class History {
public:
    static constexpr std::size_t most_series = 2048;
    using Rings = std::array<Ring, ring_shapes.size()>;

    // `all_time_peak` is the ledger's: when it rose, it is the peak since the last call, even if usage fell again in
    // between. A series that was never used is not kept.
    void add(const SeriesName& name, std::uint64_t time_s, std::uint64_t usage, std::uint64_t all_time_peak);

    // Adds a span of an earlier daemon; oldest first, before any `add`.
    void restore(const SeriesName& name, std::size_t ring, std::uint64_t time_s, const Span& span);

    struct Series {
        Rings rings{Ring(ring_shapes[0]), Ring(ring_shapes[1]), Ring(ring_shapes[2])};
        std::uint64_t all_time_peak = UINT64_MAX;  // not known
    };
    // What these use together. Its peaks are its usage: when each had its own is not known.
    static Series sum(const std::vector<const Series*>& parts, std::uint64_t now_s);
    const std::map<SeriesName, Series>& all() const noexcept { return series_; }
    std::uint64_t refused() const noexcept { return refused_; }  // samples of series for which there was no room

private:
    Series* series_of(const SeriesName& name);  // null: there is no room

    std::map<SeriesName, Series> series_;
    std::uint64_t refused_ = 0;
};

}  // namespace rdmaquota
