# Shell helpers for tests in the guest that run rdmaquotad; sourced after tap.sh. They work in the current directory.
# shellcheck shell=bash disable=SC2034 # each test uses some of these

start_sidecar() {
    : > sidecar.log
    rdmaquotad 2>> sidecar.log 9>&- &
    sidecar=$!
    await 600 'sees what the kernel makes'  # the emulator takes long to check the guard
}
# unruly_sidecar SEED: from now on it is killed with -9 at random moments and started again, until calm_sidecar, which
# leaves one that runs. Half of the lives end at once, the others after they have seen something. What all of them logged
# is in lives.log.
unruly_sidecar() {
    : > lives.log
    echo "# the sidecar is killed at random moments, from seed $1"
    (
        RANDOM=$1 deaths=0
        trap 'kill -9 $!; wait; echo $deaths > deaths; exit' TERM
        while :; do
            seen=$(lives_that_saw)
            rdmaquotad 2>> lives.log &
            if [ $((RANDOM % 2)) = 0 ]; then
                for _ in $(seq 120); do [ "$(lives_that_saw)" = "$seen" ] || break; sleep 0.5; done
            fi
            sleep $((RANDOM % 5)).$((RANDOM % 10))
            kill -9 $!
            wait $!
            deaths=$((deaths + 1))
        done
    ) 2> /dev/null &
    unruly=$!
}
lives_that_saw() { grep -c 'sees what the kernel makes' lives.log; }
calm_sidecar() {
    kill "$unruly"
    wait "$unruly"
    echo "# it was killed $(cat deaths) times, $(lives_that_saw) lives saw something"
    start_sidecar
}
stop_sidecar() { kill "$sidecar"; wait "$sidecar" 2> /dev/null; }

# await SECONDS TEXT: until the sidecar has logged TEXT; its line in $line, the time it took in $took_ms. Looks ever more seldom,
# since each look takes time from what it waits for.
await() {
    local begin=${EPOCHREALTIME/./} end hundredths=2 pause
    line=''
    until line=$(grep -F -m 1 -e "$2" sidecar.log); do
        end=${EPOCHREALTIME/./}
        if [ $((end - begin)) -ge $(($1 * 1000000)) ]; then
            not_ok "waiting for '$2'" "$(tail -n 5 sidecar.log)"
            return 1
        fi
        printf -v pause '0.%02d' $hundredths
        sleep "$pause"
        [ $hundredths -ge 32 ] || hundredths=$((hundredths * 2))
    done
    took_ms=$(((${EPOCHREALTIME/./} - begin) / 1000))
}

# The cgroup of a test, beside which there is only the root.
group=/sys/fs/cgroup/sidecar
make_group() {
    echo +rdma > /sys/fs/cgroup/cgroup.subtree_control
    mkdir -p $group
}
# in_group COMMAND...: in that cgroup; as a background job, the command has the job's pid
# shellcheck disable=SC2016 # expanded by the inner shell
in_group() { exec sh -c 'echo $$ > "$0/cgroup.procs" && exec "$@"' $group "$@"; }
bound() { xargs < $group/rdma.max; }
# bound_is NAME WANTED: within ten seconds
bound_is() {
    for _ in $(seq 50); do [ "$(bound)" != "$2" ] || break; sleep 0.2; done
    is "$1" "$(bound)" "$2"
}
