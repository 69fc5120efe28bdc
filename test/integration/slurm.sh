# Shell helpers for tests in the guest with Slurm: Debian's slurmctld, slurmd and munge on one node, by systemd;
# sourced after tap.sh, guest.sh and page.sh.
# shellcheck shell=bash disable=SC2034,SC2154 # each test uses some of these; it has `jobs` and `objects`

conf=/etc/slurm/slurm.conf
# What the package writes, and Debian's plugstack.conf includes; after an installation from the build it is for the administrator.
plugstack=/etc/slurm/plugstack.conf.d/rdmaquota.conf
node=node1
plugin=$(find /usr/lib /usr/local/lib -name spank_rdmaquota.so | head -n 1)

# Debian has Slurm built for several slurmd on a node, so the scope of jobs has the name of the node.
configure() {
    mkdir -p state spool
    [ "$plugin" ] || not_ok "the plugin is installed" "a build without Slurm's headers (libslurm-dev) has none"
    quoted slurm.md 'One line is enough: ' > /etc/slurm/cgroup.conf
    [ -e $plugstack ] || echo "optional $plugin" > $plugstack
    cat > $conf << END
ClusterName=test
SlurmctldHost=$node
SlurmUser=root
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
MessageTimeout=30
SlurmdTimeout=0
KillWait=2
SchedulerType=sched/builtin
NodeName=$node CPUs=64 RealMemory=1000 State=UNKNOWN
PartitionName=main Nodes=$node Default=YES OverSubscribe=NO
PartitionName=debug Nodes=$node
END
    block slurm.md 'In `slurm.conf`:' >> $conf
}

# awaits SECONDS COMMAND...: until COMMAND succeeds
awaits() {
    local end=$((SECONDS + $1))
    shift
    until "$@" > /dev/null 2>&1; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.2
    done
}

start_slurmd() { systemctl start slurmd; }
stop_slurmd() { systemctl stop slurmd; }  # the steps go on
start_slurmctld() { systemctl start slurmctld; }
stop_slurmctld() { systemctl stop slurmctld; }
node_state() { sinfo --noheader --format=%T | head -n 1; }
is_up() { [[ $(node_state) == idle* || $(node_state) == mixed* || $(node_state) == allocated* ]]; }

start_slurm() {
    hostname $node
    echo "127.0.0.1 localhost $node" >> /etc/hosts
    systemctl start munge
    start_slurmctld
    start_slurmd
    awaits 60 is_up || { not_ok "Slurm is up" "$(tail -n 20 slurmctld.log slurmd.log)"; finish; exit 1; }
}

stop_slurm() { systemctl stop slurmd slurmctld munge; }

as_alice() { setpriv --reuid=alice --regid=alice --init-groups --reset-env "$@"; }

# batch OPTION... -- COMMAND: a job of alice's; its number in $job
batch() {
    local options=()
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    shift
    printf '#!/bin/sh\n%s\n' "$*" > script.sh
    job=$(as_alice sbatch --parsable --chdir="$jobs" --output="$jobs/out-%j" \
        ${options+"${options[@]}"} script.sh 2> sbatch.log)
    job=${job%%;*}
}
output_of() { cat "$jobs/out-$1" 2> /dev/null; }
says() { grep -q -e "$2" "$jobs/out-$1"; }
has_ended() {
    local list
    list=$(squeue --noheader --jobs="$1" 2>&1)
    [ -z "$list" ] || [[ $list == *"Invalid job id"* ]]
}
until_ended() { awaits 60 has_ended "$1" || not_ok "job $1 ends" "$(squeue)" "$(tail slurmctld.log slurmd.log)"; }

# holding OPTION... -- STEP...: a job that holds objects until `release`, once it has them
holding() {
    local options=()
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    shift
    batch ${options+"${options[@]}"} -- "exec $objects $* wait 0<> $jobs/gate-\$SLURM_JOB_ID"
    [ "$job" ] && mkfifo "$jobs/gate-$job" && chown alice "$jobs/gate-$job"
    awaits 60 says "$job" waiting ||
        not_ok "job '$job' waits" "$(cat sbatch.log; output_of "$job")" "$(tail slurmctld.log slurmd.log)"
}
release() { echo 1<> "$jobs/gate-$1"; until_ended "$1"; }
# ran OPTION... -- COMMAND: a job from its beginning to its end; its output in $out
ran() { batch "$@"; [ "$job" ] && until_ended "$job"; out=$(cat sbatch.log; output_of "$job"); }
# tenants_of JOB: their names
tenants_of() { rdmaquota tenant list | awk -v end="/job-$1" 'substr($1, length($1) - length(end) + 1) == end { print $1 }'; }
pid_in() { cat /sys/fs/cgroup/system.slice/*slurmstepd.scope/"job_$1"/step_*/user/task_*/cgroup.procs | head -n 1; }

# A database, slurmdbd and a configuration that uses them: the cluster, the account atlas, the QOS high, and alice in both.
start_accounting() {
    systemctl start mariadb
    cat > /etc/slurm/slurmdbd.conf << END
DbdHost=$node
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
LogFile=$work/slurmdbd.log
END
    chmod 600 /etc/slurm/slurmdbd.conf
    systemctl start slurmdbd
    cat >> $conf << END
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=$node
AccountingStorageEnforce=qos
END
    awaits 120 sacctmgr --immediate add cluster test || not_ok "slurmdbd answers" "$(tail -n 5 slurmdbd.log)"
    sacctmgr --immediate add qos high > sacctmgr.log 2>&1
    sacctmgr --immediate add account atlas >> sacctmgr.log 2>&1
    sacctmgr --immediate add user alice account=atlas qos=normal,high defaultqos=normal >> sacctmgr.log 2>&1
    stop_slurmctld
    stop_slurmd
    start_slurmctld
    start_slurmd
    awaits 60 is_up || not_ok "Slurm is up with accounting" "$(tail -n 5 slurmctld.log sacctmgr.log)"
}
stop_accounting() {
    sed -i '/^Accounting/d' $conf
    systemctl stop slurmctld slurmdbd mariadb
    start_slurmctld
}
