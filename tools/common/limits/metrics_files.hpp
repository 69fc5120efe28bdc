// The files that the policy names for the metrics: certificate, key, token, authorities.
#pragma once

#include "policy/result.hpp"
#include "policy/sidecar.hpp"

namespace rdmaquota {

// The error names the first file that is not there, or whose secret other users can read or change: key and token belong to root
// (or to who runs this) and have no permissions for others. By their names only, so that users who cannot read them can check.
Result<void> check_metrics_files(const MetricsAccess& metrics);

}  // namespace rdmaquota
