// The history as the control socket tells it; see rdmaquotad(8).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/rdmaquotad/history/history.hpp"
#include "tools/rdmaquotad/serve/request.hpp"

namespace rdmaquota {

// The line with all series, and where each of them is in it, so that an answer with some of them is cut out of it:
// it is long (10 KB for each series) and made anew only when the history has gone on.
class HistoryText {
public:
    // `time_s` is CLOCK_REALTIME, of the last sample. `whole`: with the present span also where it was not seen yet.
    HistoryText(const History& history, std::uint64_t time_s, bool whole = false);

    std::shared_ptr<const std::string> all() const { return all_; }

    // What the request asks for.
    std::shared_ptr<const std::string> answer(const Request& request) const;

private:
    struct Part {
        std::string device;
        std::string_view resource;
        std::size_t begin;
        std::size_t size;
    };
    std::size_t head_;  // bytes before the first series
    std::vector<Part> parts_;
    std::shared_ptr<const std::string> all_;
};

}  // namespace rdmaquota
