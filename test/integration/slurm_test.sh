#!/bin/bash
# slurm_test.sh BUILD: jobs of a real Slurm (slurmctld, slurmd, munge) and their tenants, by the plugin. Runs as root in the
# guest.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh"
chmod 755 "$work"
useradd --no-create-home alice
jobs=$work/jobs
mkdir "$jobs" && chown alice "$jobs"
# shellcheck source=test/integration/slurm.sh
. "$here/slurm.sh"
objects=$programs/verbs_objects

policy << 'END'
version = 1
[tenant.default."*"]
qp = 1
[slurm.job."*"]
qp = 4
[slurm.account.atlas."*"]
qp = 3
[slurm.partition.debug."*"]
qp = 2
END
configure
start_slurm

ended() { ! squeue --noheader --jobs="$1" 2> /dev/null | grep -q .; }
says() { grep -q -e "$2" "$jobs/job-$1_4294967294.out"; }
output_of() { cat "$jobs/job-$1_4294967294.out" 2> /dev/null; }
# holding OPTION... -- STEP...: a job that holds objects until `release`, once it has them
holding() {
    local options=()
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    shift
    batch ${options+"${options[@]}"} -- "exec $objects $* wait 0<> $jobs/gate-\$SLURM_JOB_ID"
    mkfifo "$jobs/gate-$job" && chown alice "$jobs/gate-$job"
    [ "$job" ] && awaits 60 says "$job" waiting || not_ok "job $job waits" "$(output_of "$job")" "$(tail slurmctld.log slurmd.log)"
}
release() { echo 1<> "$jobs/gate-$1"; awaits 60 ended "$1" || not_ok "job $1 ends" "$(squeue)"; }

# --- one job ------------------------------------------------------------------------------------------
holding -A atlas -- rc=9
first=$job
has "a job is held to what its account has" "$(output_of "$first")" "rc: 3 of 9, then EDQUOT"
has "in a tenant of its own" "$(rdmaquota tenant list)" "slurm/atlas/job-$first"
release "$first"
finish
