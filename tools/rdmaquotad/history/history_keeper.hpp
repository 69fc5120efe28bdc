// Keeps the history of all tenants: samples it, saves it now and then, and answers requests for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/rdmaquotad/node/node.hpp"
#include "tools/rdmaquotad/history/history.hpp"
#include "tools/rdmaquotad/history/history_json.hpp"
#include "tools/rdmaquotad/serve/control_socket.hpp"

namespace rdmaquota {

class HistoryKeeper {
public:
    explicit HistoryKeeper(const Node& node) : node_(node) {}

    // Goes on with what an earlier daemon saved. The error says that it begins anew.
    Result<void> load();
    // Takes the figures of the last look at each ledger, and their sum as those of "node"; saves once a minute.
    void sample();
    // Logs an error, once.
    void save();

    Text answer(const Request& request, const HistoryText::Sees& sees);
    // A series alone, as an element of that answer's "history", or the sum of those below an inner tenant; "null" where none is
    // kept.
    Text one(const SeriesName& name) const;
    // As last_hour_text.
    Text last_hour(const HistoryText::Sees& sees) const;

private:
    std::vector<DeviceFigures> node_figures(const std::vector<std::string>& devices) const;

    const Node& node_;
    History history_;
    std::uint64_t sampled_at_ = 0, save_at_ = 0;  // CLOCK_REALTIME
    std::string said_unsaved_;
    std::optional<HistoryText> text_;  // until the next sample
};

}  // namespace rdmaquota
