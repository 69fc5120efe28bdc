// Writes events where they outlive the rings (tools/common/events/event_journal.hpp).
#pragma once

#include <string>

#include "tools/common/views/json.hpp"
#include "tools/rdmaquotad/loop/log.hpp"

namespace rdmaquota {

class EventKeeper {
public:
    explicit EventKeeper(std::string directory);

    // An event as subscribers get it. True when it stands in the log by that, with its text, as with systemd-journald.
    bool keep(Priority priority, const Json& event);

private:
    bool to_journald(Priority priority, const Json& event) const;
    void to_file(const Json& event);

    std::string directory_;
    bool journald_;
    std::string said_;  // an error, so that it is said once
};

}  // namespace rdmaquota
