# Shell helpers for tests in the guest that run rdmaquotad; sourced after tap.sh. They work in the current directory.
# shellcheck shell=bash disable=SC2034 # each test uses some of these

start_sidecar() {
    : > sidecar.log
    rdmaquotad 2>> sidecar.log 9>&- &
    sidecar=$!
    await 'sees what the kernel makes'
}
# unruly_sidecar SEED: from now on it is killed with -9 at random moments and started again, until calm_sidecar, which
# leaves one that runs. Half of the lives end at once, the others after they have seen something. What all of them logged
# is in lives.log.
unruly_sidecar() {
    : > lives.log
    echo 0 > deaths
    echo "# the sidecar is killed at random moments, from seed $1"
    (
        RANDOM=$1 deaths=0
        trap 'kill -9 $!; wait; exit' TERM
        while :; do
            seen=$(lives_that_saw)
            rdmaquotad 2>> lives.log &
            if [ $((RANDOM % 2)) = 0 ]; then
                for _ in {1..120}; do [ "$(lives_that_saw)" = "$seen" ] || break; pause 0.5; done
            fi
            pause $((RANDOM % 5)).$((RANDOM % 10))
            kill -9 $!
            wait $!
            deaths=$((deaths + 1))
            echo $deaths > deaths
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

# await TEXT: until the sidecar has logged TEXT; its line in $line, the time it took in $took_ms
await() {
    local begin=${EPOCHREALTIME/./}
    line=''
    eventually "the sidecar logs '$1'" logged "$1" || return
    took_ms=$(((${EPOCHREALTIME/./} - begin) / 1000))
}
logged() { line=$(grep -F -m 1 -e "$1" sidecar.log) || { tail -n 5 sidecar.log; return 1; }; }

# ask REQUEST [MEMBER]: what the sidecar answers, or a number in it; see test/programs/ask.c
ask() { "$programs/ask" "$@"; }
# looks_pass [N]: until the sidecar has compared kernel and ledgers N times (2) and gone one round, each from its beginning. What it
# has not told of then it will not tell of.
looks_pass() {
    local looks rounds
    looks=$(ask status looks) rounds=$(ask status rounds)
    eventually "the sidecar looks" looked $((looks + ${1:-2} + 1)) $((rounds + 2))
}
looked() { [ "$(ask status looks)" -ge "$1" ] && [ "$(ask status rounds)" -ge "$2" ]; }

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
# bound_is NAME WANTED
bound_is() {
    eventually "$1" prints "$2" bound
    is "$1" "$(bound)" "$2"
}
