// Where a device that is opened now is charged: the tenant that the node's policy puts this process into, at this moment.
#pragma once

#include <string>

#include "policy/result.hpp"

namespace rdmaquota::provider {

struct Place {
    std::string directory;  // the quota directory
    std::string here;       // the tenant's part of it; the same for a directory that is one tenant's own
    bool is_default;        // the tenant `default`, whose ledger this process may make if it is root
    std::string rule;       // what decided: "match 2 of physics/atlas"
    std::string note;       // why it is `default` and not the tenant that a match names; else empty
};

// The error says what is missing in the quota directory. Keeps errno; throws only std::bad_alloc.
Result<Place> find_place(const std::string& directory);

}  // namespace rdmaquota::provider
