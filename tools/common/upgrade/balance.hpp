// Programs that run with the rdmaquota before tenants follow its policy and charge its ledger; new ones charge the
// tenant `default`. Both share what `default` may use: the old ones keep what they have and get nothing more, the new
// ones get the rest.
//
// The order makes it exact without waiting for anyone. An old charger raises the ledger's gate, then looks whether the
// policy's generation is what it was, and backs out when not. Here the old limit is lowered, then the generation goes
// up, and only then the gates are read: whatever that reading does not have meets the lower limit. The effective limit
// of `default` goes up last. So for each limit of `default`, the old programs' share and what is effective never exceed
// together what is configured, wherever this is killed.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "policy/result.hpp"

namespace rdmaquota {

// Idempotent; call it after every change of limits of `default`, and each second. Where no such program can be, it
// returns at once. Once the last one has ended, it removes the old files. By root; takes the locks of the old policy
// and of the limits of `default`, in that order. `at` is told each step before it is made, for tests.
Result<void> balance_with_old(const std::string& directory, const std::function<void(std::string_view)>& at = {});

}  // namespace rdmaquota
