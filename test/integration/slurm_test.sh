#!/bin/bash
# slurm_test.sh BUILD: jobs of a real Slurm (slurmctld, slurmd, munge) and their tenants, by the plugin. Runs as root in the
# guest with --systemd, in a root file system with Slurm.
set -u
# systemd clears /tmp when it starts.
until systemctl start basic.target > /dev/null 2>&1; do sleep 0.2; done
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh"
chmod 755 "$work"
useradd --no-create-home alice
jobs=$work/jobs
mkdir "$jobs" && chown alice "$jobs"
# shellcheck source=test/integration/page.sh
. "$here/page.sh"
# shellcheck source=test/integration/sidecar.sh
. "$here/sidecar.sh"
# shellcheck source=test/integration/guard.sh
. "$here/guard.sh"  # before the next one, which has a `release` of its own
# shellcheck source=test/integration/slurm.sh
. "$here/slurm.sh"
objects=$programs/verbs_objects

limits='version = 1
[tenant.default."*"]
qp = 1
[slurm.job."*"]
qp = 4
[slurm.account.atlas."*"]
qp = 3
[slurm.partition.debug."*"]
qp = 2'
configure
start_slurm
srun_of_alice() { as_alice srun "$@" 2>&1; }
doctor() { rdmaquota doctor | grep ' Slurm: '; }

# --- as docs/slurm.md has it ----------------------------------------------------------------------------
{ echo 'version = 1'; block slurm.md 'Nothing changes until'; } > /etc/rdmaquota/rdmaquota.toml
out=$(bash -c "$(block slurm.md 'puts the tables in force')" 2>&1)
has "its commands say that slurmd has loaded the plugin" "$out" "has loaded the plugin"
is "and what a job of two tables gets" "$(grep -c -E '^\* +qp +400 *$' <<< "$out")" 1
has "its example is refused what exceeds the job's quota" \
    "$(timeout 120 bash -c "$(block slurm.md 'give a job one QP')" 2>&1)" "rdmaquota: qp on $device denied"
policy <<< "$limits"

# --- side by side -------------------------------------------------------------------------------------
holding -A atlas -- rc=9
first=$job
holding -p debug -- rc=9
second=$job
holding -A atlas -- rc=1 wait rc=9
third=$job
has "a job is held to what its account has" "$(output_of "$first")" "rc: 3 of 9, then EDQUOT"
has "and is told of it" "$(output_of "$first")" "tenant slurm/atlas/job-$first uses 3 of 3"
has "one beside it to what its partition has" "$(output_of "$second")" "rc: 2 of 9, then EDQUOT"
is "each in a tenant of its own" "$(tenants_of "$first") $(tenants_of "$second")" "slurm/atlas/job-$first slurm/none/job-$second"
pid=$(pid_in "$first")
has "which it is in by its cgroup" "$(cat "/proc/$pid/cgroup")" \
    "0::/system.slice/${node}_slurmstepd.scope/job_$first/step_batch/user/task_"
is "in a scope of systemd" "$(systemctl is-active "${node}_slurmstepd.scope")" active
has "as which says" "$(rdmaquota which --pid "$pid")" "tenant slurm/atlas/job-$first"
has "doctor finds the plugin in slurmd" "$(doctor)" "has loaded the plugin"
has "and the jobs" "$(doctor)" "3 jobs have a tenant"
lacks "and nothing wrong" "$(doctor)" problem

# --- steps, one after the other ------------------------------------------------------------------------
ran -A atlas -- "srun $objects rc=1; rdmaquota which; srun $objects rc=9"
is "a job keeps its tenant between its steps" "$(grep -o '^tenant [^:]*\|^rc: .*' <<< "$out" | xargs)" \
    "rc: 1 of 1 tenant slurm/atlas/job-$job rc: 3 of 9, then EDQUOT"
is "which goes with the last" "$(tenants_of "$job")" ""

# --- slurmd is restarted under them -------------------------------------------------------------------
stop_slurmd
start_slurmd
awaits 60 is_up
is "jobs keep their tenants while slurmd is restarted" "$(tenants_of "$first") $(tenants_of "$second")" \
    "slurm/atlas/job-$first slurm/none/job-$second"
has "with what they hold" "$(rdmaquota show "slurm/atlas/job-$first")" "$pid"
policy <<< "$limits"
is "and over a reload" "$(tenants_of "$first")" "slurm/atlas/job-$first"
release "$first"
is "a job that has ended has no tenant" "$(tenants_of "$first")" ""
echo 1<> "$jobs/gate-$third"
awaits 60 says "$third" '^rc: 2 of 9' || not_ok "a job goes on" "$(output_of "$third")"
is "what a job makes after that is held to its quota" "$(output_of "$third" | grep -c 'rc: 2 of 9, then EDQUOT')" 1
release "$third"
is "the other one still has" "$(tenants_of "$second")" "slurm/none/job-$second"

# --- killed ---------------------------------------------------------------------------------------------
scancel --signal=KILL --full "$second"
until_ended "$second"
is "nor one that was killed" "$(tenants_of "$second")" ""
is "which leaves nothing behind" "$(find /run/rdmaquota/tenants -name 'slurm+none+job*')" ""

# --- requeued -------------------------------------------------------------------------------------------
holding --requeue -A atlas -- rc=9
pid=$(pid_in "$job")
scontrol requeue "$job"
awaits 60 [ ! -e "/proc/$pid" ] || not_ok "a requeued job ends" "$(squeue)"
rm "$jobs/out-$job"
awaits 300 says "$job" waiting || not_ok "a requeued job runs again" "$(squeue)"
has "a job that runs again begins with an empty ledger" "$(output_of "$job")" "rc: 3 of 9, then EDQUOT"
is "in its tenant" "$(tenants_of "$job")" "slurm/atlas/job-$job"
release "$job"

# --- what users ask for ---------------------------------------------------------------------------------
out=$(srun_of_alice --rdma=qp=2,mr_bytes=1MiB -A atlas "$objects" rc=9 mr=2:900000)
has "a job may ask for less" "$out" "rc: 2 of 9, then EDQUOT"
has "of each resource" "$out" "mr: 1 of 2, then EDQUOT"
out=$(srun_of_alice --rdma=qp=7 -A atlas "$objects" rc=9)
has "not for more" "$out" "rc: 3 of 9, then EDQUOT"
has "and is told so" "$out" "rdmaquota: --rdma: qp cannot be 7: the policy of this node gives a job 3"
has "so is the administrator" "$(rdmaquota events --kind job)" "--rdma: qp cannot be 7"
has "what is wrong is refused at submission" "$(srun_of_alice --rdma=qps=1 true)" "rdmaquota: --rdma: "
ran --rdma=qp=2 -- "srun --rdma=qp=1 $objects rc=9; echo refused \$?; srun $objects rc=9"
has "a step cannot ask" "$out" "rdmaquota: --rdma belongs to a whole job: this is a step of job $job"
has "and does not run" "$out" "refused 255"
lacks "what is handed down to it is no asking" "$out" "Invalid argument (qp=2)"
has "a step is held to what the job asked for" "$out" "rc: 2 of 9, then EDQUOT"
has "a step of salloc too" "$(as_alice salloc --rdma=qp=1 srun "$objects" rc=9 2>&1)" \
    "rc: 1 of 9, then EDQUOT"
holding --rdma=qp=2 -- rc=1
out=$(srun_of_alice --jobid="$job" --overlap --rdma=qp=1 echo it runs)
has "a step from elsewhere cannot ask" "$out" "rdmaquota: --rdma belongs to a whole job: this is a step of job $job"
lacks "and does not run either" "$out" "it runs"
has "nor by a variable" "$(as_alice env SLURM_JOB_ID="$job" \
    SLURM_SPANK__SLURM_SPANK_OPTION_rdmaquota_rdma=qp=1 srun --overlap true 2>&1)" \
    "whose quota stands"
has "one that does not ask runs" "$(srun_of_alice --jobid="$job" --overlap "$objects" rc=9)" "rc: 1 of 9, then EDQUOT"
release "$job"

# --- an array of fifty, all at once ---------------------------------------------------------------------
rm -f "$jobs"/out-*
batch --array=1-50 -A atlas -- "rdmaquota which; exec $objects rc=9"
awaits 600 has_ended "$job" || not_ok "the array ends" "$(squeue)"
is "each job of an array has its own quota" "$(grep -h '^rc:' "$jobs"/out-* | sort | uniq -c | xargs)" "50 rc: 3 of 9, then EDQUOT"
is "in a tenant of its own" "$(grep -h -o 'tenant slurm/atlas/job-[0-9]*' "$jobs"/out-* | sort -u | wc -l)" 50
is "and none keeps its tenant" "$(rdmaquota tenant list | grep -c slurm/)" 0

# --- a number that is used again ------------------------------------------------------------------------
holding -A other -- rc=2
systemctl kill --kill-who=main --signal=KILL slurmd
stop_slurmctld
for pid in $(cat /sys/fs/cgroup/system.slice/*slurmstepd.scope/"job_$job"/step_batch/{slurm,user/task_*}/cgroup.procs); do
    kill -9 "$pid"
done
again=$job
is "a job whose end nobody saw leaves a tenant" "$(tenants_of "$again")" "slurm/other/job-$again"
echo "FirstJobId=$again" >> $conf
rm -r state/*  # with the last number
start_slurmctld
start_slurmd
awaits 60 is_up
rm "$jobs/gate-$again" "$jobs/out-$again"
holding -A atlas -- rc=9
is "another job gets its number" "$job" "$again"
is "and a tenant of its own" "$(tenants_of "$job")" "slurm/atlas/job-$again"
has "with an empty ledger" "$(output_of "$job")" "rc: 3 of 9, then EDQUOT"
release "$job"
is "which ends with it" "$(tenants_of "$job")" ""

# --- what goes wrong does not fail a job ----------------------------------------------------------------
echo broken > /run/rdmaquota/slurm/policy.toml
ran -A atlas -- "exec $objects rc=9"
has "without a policy that can be read a job runs in default" "$out" "rc: 1 of 9, then EDQUOT"
has "its output says why" "$out" "rdmaquota: job $job has no RDMA quota of its own: /run/rdmaquota/slurm/policy.toml:1"
has "and the event" "$(rdmaquota events --kind job)" "job $job has no RDMA quota of its own"
policy <<< "$limits"
command=$(command -v rdmaquota)
mv "$command" "$command.away"
ran -A atlas -- "exec $objects rc=9"
mv "$command.away" "$command"
has "without the command, too" "$out" "rdmaquota: job $job has no RDMA quota of its own: $command cannot be run"
has "which is an event as well" "$(rdmaquota events --kind job)" "job $job has no RDMA quota of its own: $command cannot be run"
printf '#!/bin/sh\nsleep 100\n' > slow && chmod 755 slow
mv "$command" "$command.away" && cp slow "$command"
echo "optional $plugin timeout=3" > $plugstack
ran -A atlas -- "exec $objects rc=9"
mv "$command.away" "$command"
has "nor does it wait for ever" "$out" "took longer than 3 s"
has "which is an event, too" "$(rdmaquota events --kind job)" "took longer than 3 s"

# --- without [slurm] ------------------------------------------------------------------------------------
policy <<< 'version = 1'
rm -r /run/rdmaquota/slurm  # as after a boot
ran --rdma=qp=2 -- "exec $objects rc=9"
has "without [slurm] a job has no quota" "$out" "rc: 9 of 9"
has "and --rdma no effect, which is told" "$out" "rdmaquota: --rdma has no effect: the policy of this node has no [slurm]"
ran -- "exec $objects rc=9"
is "nothing else is" "$out" "rc: 9 of 9"
policy <<< "$limits"

# --- another configuration ------------------------------------------------------------------------------
echo PrologFlags=Alloc,Contain >> $conf
echo PrologEpilogTimeout=10 >> $conf
echo "optional $plugin" > $plugstack
stop_slurmctld
stop_slurmd
start_slurmctld
start_slurmd
awaits 60 is_up
holding -A atlas -- rc=9
has "with a prolog at the allocation the same holds" "$(output_of "$job")" "rc: 3 of 9, then EDQUOT"
release "$job"
is "also at the end" "$(tenants_of "$job")" ""
mv "$command" "$command.away" && cp slow "$command"
ran -A atlas -- "exec $objects rc=9"
mv "$command.away" "$command"
has "a prolog ends before Slurm would end it" "$out" "took longer than 5 s"
never_drained() { is "the node was never drained" "$(sinfo --noheader --list-reasons; grep -i drain slurmctld.log)" ""; }
never_drained

# --- beside the sidecar and its guard ---------------------------------------------------------------------
policy <<< "$limits
[sidecar]
guard = \"deny\""
systemctl start rdmaquotad
guard_is deny
# A static program in a new cgroup is not known yet, and tries again.
objects=${objects}_static holding -A atlas -- wait rc=9
followed
echo 1<> "$jobs/gate-$job"
awaits 60 says "$job" '^rc:'
has "a job's static program is held by the guard" "$(output_of "$job")" "rc: 3 of 9, then "
is "in the job's tenant" "$(counted "slurm/atlas/job-$job" qp)" 3
release "$job"
holding -A atlas -- rc=2
out=$(srun_of_alice --jobid="$job" --overlap sh -c "{ sleep 5; echo; } | ${objects}_static wait rc=9")
has "library and guard charge one tenant" "$out" "rc: 1 of 9, then "
release "$job"
no_job_in_guard() { rdmaquota guard --json > guard.json && ! grep -q slurm/ guard.json; }
awaits 20 no_job_in_guard
is "no job leaves a tenant in the guard" "$(grep -o 'slurm/[^"]*' guard.json)" ""
systemctl stop rdmaquotad
rdmaquota guard off > /dev/null
policy <<< "$limits"

# --- an account that bounds its jobs together -----------------------------------------------------------------
policy <<< "$limits
[tenant.\"slurm/{account}\".\"*\"]
qp = 4"
holding -A atlas -- rc=9
first=$job
holding -A atlas -- rc=9
second=$job
holding -A other -- rc=9
has "two jobs of an account have what it may use, together" "$(output_of "$first") $(output_of "$second")" "rc: 1 of 9, then EDQUOT"
has "and no other account is the worse for it" "$(output_of "$job")" "rc: 4 of 9, then EDQUOT"
for job in "$first" "$second" "$job"; do release "$job"; done
is "an account goes with its last job" "$(find /run/rdmaquota/tenants -name 'slurm+atlas' -o -name 'slurm+other')" ""
policy <<< "$limits"

# --- QOS, which only slurmctld knows, by the real slurmdbd ------------------------------------------------
policy <<< "$limits
[slurm.qos.high.\"*\"]
qp = 4"
start_accounting
holding -A atlas --qos=high -- rc=9
has "a job of a QOS is held to what the QOS has" "$(output_of "$job")" "rc: 4 of 9, then EDQUOT"
release "$job"
holding -A atlas -- rc=9
has "one without it to what its account has" "$(output_of "$job")" "rc: 3 of 9, then EDQUOT"
release "$job"
out=$(srun_of_alice -A atlas --qos=high --rdma=qp=9 "$objects" rc=9)
has "nobody asks for more than the QOS gives" "$out" "rdmaquota: --rdma: qp cannot be 9: the policy of this node gives a job 4"
stop_accounting

has "doctor finds that there is no cgroup version 2" \
    "$(unshare --mount sh -c 'mount -t tmpfs tmpfs /sys/fs/cgroup && exec rdmaquota doctor' | grep ' Slurm: ')" \
    "has cgroup version 1, by which jobs cannot be told apart"
has "and that jobs are named by something else than their number" \
    "$(unshare --mount sh -c 'mount -t tmpfs tmpfs /sys/fs/cgroup && mkdir -p /sys/fs/cgroup/system.slice/n1_slurmstepd.scope/system \
        /sys/fs/cgroup/system.slice/n1_slurmstepd.scope/sEKNK12 && : > /sys/fs/cgroup/cgroup.controllers && exec rdmaquota doctor' |
        grep ' Slurm: ')" "(sEKNK12), so their tenants hold nobody: put CgroupJobIdPaths=yes into cgroup.conf"
plugin=$(sed -n 's/^optional *//p' $plugstack)
cp -p "$plugin" "$plugin.new" && mv "$plugin.new" "$plugin"
has "and that slurmd has the plugin from before an upgrade" "$(doctor)" "has loaded the plugin of an earlier version: restart slurmd"
: > $plugstack
stop_slurmd
start_slurmd
awaits 60 is_up
has "doctor finds that slurmd has no plugin" "$(doctor)" "has not loaded the plugin, so jobs get no tenant"

# --- undone, as docs/slurm.md has it ----------------------------------------------------------------------
policy <<< 'version = 1'
if dpkg -s rdmaquota-slurm > /dev/null 2>&1; then
    # shellcheck disable=SC2016 # of the page
    succeeds "the package is purged" env DEBIAN_FRONTEND=noninteractive $(quoted slurm.md 'out of `plugstack.conf`, ') -y
    is "nothing of the plugin is left" "$(find /etc/slurm /usr/lib -name '*rdmaquota*' -path '*slurm*')" ""
    systemctl restart slurmd
    awaits 60 is_up
    ran -- "exec $objects rc=9"
    is "jobs run without a word of it" "$out" "rc: 9 of 9"
fi
never_drained
stop_slurm
finish
