#!/bin/bash
# guard_races_test.sh BUILD: the guard when things happen at once, on two CPUs: programs that change their requests, many
# that want the last of something, and honest ones that look alike. RDMAQUOTA_ROUNDS: how often. Runs as root in the guest.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh"
# shellcheck source=test/integration/sidecar.sh
. "$here/sidecar.sh"
# shellcheck source=test/integration/guard.sh
. "$here/guard.sh"
rounds=${RDMAQUOTA_ROUNDS:-12}

guard_policy deny 5 > policy.toml
rdmaquota reload policy.toml > /dev/null
start_sidecar
guard_is deny

# most_seen COMMAND...: the most PDs that the kernel had while it ran
most_seen() {
    local most=0 now
    "$@" < /dev/null > out 2>&1 &
    program=$!
    while kill -0 $program 2> /dev/null; do
        now=$(pds)
        [ "$now" -le $most ] || most=$now
    done
    wait $program 2> /dev/null
    echo $most
}
most=0 killed=0
# Until one was in time.
for i in $(seq 100); do
    now=$(most_seen timeout 20 "$programs/around" racer 50)
    [ "$now" -le $most ] || most=$now
    killed=$(rdmaquota guard --json | sed 's/.*"killed":\([0-9]*\).*/\1/')
    [ "$i" -lt "$rounds" ] || [ "$killed" = 0 ] || break
done
echo "# $i racers: $most PDs at most, $killed killed"
is "who changes a request while it is read gets one too many at most" "$([ $most -le 6 ] && echo yes || echo $most)" yes
is "and some did change it in time" "$([ "$killed" -gt 0 ] && echo yes)" yes
until_counted default pd 0
is "nothing of them is left in the books" "$(counted default pd)" 0

most=0
for _ in $(seq "$rounds"); do
    jobs=()
    for i in 1 2 3; do
        "$programs/around" threads 10 < /dev/null > "many.$i" &
        jobs+=($!)
    done
    for _ in 1 2 3 4 5; do
        now=$(pds)
        [ "$now" -le $most ] || most=$now
    done
    for i in "${jobs[@]}"; do wait "$i"; done
done
is "192 threads of three programs have the limit at most" "$([ $most -le 5 ] && echo yes || echo $most)" yes
until_counted default pd 0

guard_policy deny 8 > policy.toml
rdmaquota reload policy.toml > /dev/null
refused=0
for _ in $(seq "$rounds"); do
    jobs=()
    for i in 1 2 3 4; do
        unshare --pid --fork "$programs/raw_uverbs" ioctl 2 < /dev/null > "twin.$i" 2>&1 &
        jobs+=($!)
    done
    for i in "${jobs[@]}"; do wait "$i" || refused=$((refused + 1)); done
done
is "honest programs that are pid 1 of namespaces, all at once: none refused, none killed" $refused 0

# Killed at any moment, they leave nothing.
for _ in $(seq "$rounds"); do
    "$programs/around" threads 8 < /dev/null > many.1 &
    victim=$!
    sleep 0.0$((RANDOM % 10))
    kill -9 $victim
    wait $victim 2> /dev/null
done
until_counted default pd 0
is "killed in the middle they leave nothing" "$(counted default pd) $(counted default hca_handle) $(counted node pd)" "0 0 0"
stop_sidecar
rdmaquota guard off > /dev/null
finish
