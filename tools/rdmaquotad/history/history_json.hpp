// The history in the form of the control socket's answer; see rdmaquotad(8).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tools/rdmaquotad/history/history.hpp"
#include "tools/rdmaquotad/serve/request.hpp"

namespace rdmaquota {

// One series, as an element of "history".
std::string series_text(const SeriesName& name, const History::Series& series, std::uint64_t time_s);

// Usage at the end of each of the last 60 minutes, oldest first: [[TENANT, DEVICE, RESOURCE, [N or null, ...]], ...].
std::string last_hour_text(const History& history, const std::function<bool(const std::string& tenant)>& sees, std::uint64_t time_s);

// The line with all series, and the position of each in it, so that an answer with some of them can be cut out of it. It
// is long (10 KB for each series), so make it once per sample.
class HistoryText {
public:
    // `time_s` is CLOCK_REALTIME, of the last sample. `whole`: include the present span even if it has no sample yet.
    HistoryText(const History& history, std::uint64_t time_s, bool whole = false);

    std::shared_ptr<const std::string> all() const { return all_; }

    // The line with the series that the request asks for, of tenants for which `sees` is true; an empty `sees` is for all.
    using Sees = std::function<bool(const std::string& tenant)>;
    // Those who ask for the same share one text.
    std::shared_ptr<const std::string> answer(const Request& request, const Sees& sees);

private:
    struct Part {
        std::string tenant, device;
        std::string_view resource;
        std::size_t begin;
        std::size_t size;
    };
    std::shared_ptr<const std::string> cut(const Request& request, const std::set<std::string>& hidden) const;

    static constexpr std::size_t most_cut = 16;  // texts that are kept
    std::size_t head_;                           // bytes before the first series
    std::set<std::string> tenants_;              // in the history
    std::map<std::string, std::shared_ptr<const std::string>> cut_;
    std::vector<Part> parts_;
    std::shared_ptr<const std::string> all_;
};

}  // namespace rdmaquota
