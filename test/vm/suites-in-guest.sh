#!/bin/bash
# suites-in-guest.sh SUITE...: runs suites of test/run.sh one after the other in one guest, as root, each in a capsule
# (capsule.sh). Before the first one that wants it so, rdmaquota is installed. Around the output of each stand the lines
#   #begin SUITE
#   #end SUITE STATUS SECONDS
# Between two suites processes are ended, and devices, cgroups and the simulated adapter's knobs put back.
# Exit status: 0 all have run, whatever they said; 3 the guest is not what it was, and those that are left need another one;
# 125 the installation failed.
set -u
vm_dir=$(dirname "$(realpath "$0")")
test_dir=${vm_dir%/vm}
# shellcheck source=test/processes.sh
. "$test_dir/processes.sh"
build=$RDMAQUOTA_BUILD
seconds_at_most=1200  # five times what the slowest takes; a machine may be three times as slow
installed=''

# command_of SUITE: sets `command`
command_of() {
    local integration=$test_dir/integration
    local seed=${RDMAQUOTA_SEED:-$RANDOM}
    local oracle=("$build" --seed "$seed" --steps "${RDMAQUOTA_STEPS:-3000}")
    case $1 in
        kernel_lives) command=(bash "$integration/kernel_test.sh" "$build" lives) ;;
        kills | powers) command=(env "RDMAQUOTA_SEED=$seed" bash "$integration/sidecar_$1_test.sh" "$build") ;;
        oracle | oracle_threads) command=(bash "$test_dir/oracle/run.sh" "${oracle[@]}" single limits threads resizers processes unplug) ;;
        oracle_kills) command=(bash "$test_dir/oracle/run.sh" --kill-sidecar "$seed" "${oracle[@]}" --new-sidecar 5
            threads processes) ;;
        programs) command=(/usr/bin/python3 "$integration/programs_test.py") ;;
        pyverbs) command=(bash "$integration/pyverbs_test.sh" "$build" rxe0) ;;
        pyverbs_mlx5) command=(bash "$integration/pyverbs_test.sh" "$build" mlx5_0) ;;
        *) command=(bash "$integration/$1_test.sh" "$build") ;;
    esac
}

install_once() {
    [ -z "$installed" ] || return 0
    sh "$vm_dir/install-in-guest.sh" || exit 125
    installed=yes
}

# processes: the pids of all but this script and kernel threads, which have no executable
processes() {
    local directory
    for directory in /proc/[0-9]*; do
        [ ! -e "$directory/exe" ] || [ "$directory" = "/proc/$$" ] || pids[${directory#/proc/}]=1
    done
}

# end_processes: all that were not there in the beginning; fails when one stays
end_processes() {
    local try pid strangers
    for try in $(seq 100); do
        local -A pids=()
        processes
        strangers=()
        for pid in "${!pids[@]}"; do [ -n "${pids_before[$pid]-}" ] || strangers+=("$pid"); done
        [ ${#strangers[@]} != 0 ] || return 0
        kill -9 "${strangers[@]}" 2> /dev/null
        sleep 0.05
    done
    echo "these processes stay: ${strangers[*]}, after $try attempts"
    return 1
}

devices() { echo /sys/class/infiniband/* /sys/class/net/*; }

put_back() {
    local file
    end_processes || return
    find /sys/fs/cgroup -mindepth 1 -depth -type d -exec rmdir {} + 2> /dev/null
    for file in /sys/kernel/debug/mlx5sim/*/{errno,delay_ms,command_us,page_ns}; do [ ! -e "$file" ] || echo 0 > "$file"; done
    [[ $(grep ' /proc proc ' /proc/mounts) != *hidepid=[!0]* ]] || mount -o remount,hidepid=0,gid=0 /proc
    rm -f /dev/log
    # Ledgers that a suite had replaced: the tenant's file system has room for a few.
    rm -rf /run/rdmaquota/tenants/*/here/ledgers/*.unusable.*
    chmod 666 /dev/infiniband/rdma_cm /dev/infiniband/uverbs*
    [ "$(devices)" = "$devices_before" ] || { echo "the devices are $(devices)"; return 1; }
    [ -z "$(find /sys/fs/cgroup -mindepth 1 -type d)" ] || { echo "a cgroup cannot be removed"; return 1; }
}

# run SUITE: fails when it had to be ended
run() {
    local command begin=$SECONDS status=0
    case $1 in uninstalled | early) ;; *) install_once ;; esac
    printf '\n#begin %s\n' "$1"
    command_of "$1"
    timeout --kill-after=5 $seconds_at_most "$vm_dir/capsule.sh" "${command[@]}" 2>&1 || status=$?
    [ $status != 124 ] && [ $status != 137 ] || echo "it did not end within $seconds_at_most s"
    printf '\n#end %s %d %d\n' "$1" $status $((SECONDS - begin))
    [ $status != 124 ] && [ $status != 137 ]
}

devices_before=$(devices)
declare -A pids=()
processes
declare -A pids_before=()
for pid in "${!pids[@]}"; do pids_before[$pid]=1; done
for suite; do
    run "$suite" && put_back || exit 3
done
