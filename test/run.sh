#!/bin/bash
# run.sh [OPTION...] [SUITE...]: installs what is missing, builds, and runs every test of the default tier, or the suites named.
# The last line is 'N passed, N failed'. test/suites.txt is the table of all suites; --help lists them.
#
#   --all         also the suites of the tier `all`: other kernels, races, models, packages, containers, Slurm
#   --no-changes  do not add suites for what has changed. Without it, a run without names adds, after the default tier, what
#                 test/changes.txt names for the files that differ from the commit that was last proven here (else from the
#                 last one that is two days old), the dearest last, as long as the run stays below RDMAQUOTA_MINUTES (20); it
#                 names what it left out
#   --long        storms for two hours, each fuzz target for half an hour, the larger models, every program of `programs`,
#                 twice the deaths in `kills`
#   --allow-skip  a suite that cannot run here says why; with this it does not count as failed
#
# RDMAQUOTA_BUILD names the build directory (default: build in the source tree); the whole output of each suite is in its
# test-logs. RDMAQUOTA_LANES: how many suites run at a time (2). RDMAQUOTA_SEED is the seed of everything random; a run prints the
# one it took. RDMAQUOTA_PATIENCE: seconds after
# which a wait gives up (300). RDMAQUOTA_FROM_BUILD=yes: `containers` and `slurm` take the build instead of HEAD's packages.
set -u
repo=$(cd "$(dirname "$0")/.." && pwd)
"$repo/tools/setup.sh" || exit 1
exec /usr/bin/python3 "$repo/test/runner/main.py" "$@"
