#!/bin/bash
# sidecar_kills_test.sh BUILD: what killed processes held is back, at once while the sidecar runs, and all of it when
# that is killed too. Runs as root in the guest after an installation; RDMAQUOTA_SEED repeats a run. What follows '#'
# on a line of its own is measured, not judged.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh"
# shellcheck source=test/integration/sidecar.sh
. "$here/sidecar.sh"
tools=$1/test/integration
# shellcheck disable=SC2031 # the unruly sidecar has a generator of its own
seed=${RDMAQUOTA_SEED:-$RANDOM}
make_group
echo "# to repeat this: RDMAQUOTA_SEED=$seed"

# in_use: of the ledger, without repairing it: handles, objects, bytes
in_use() { for resource in hca_handle hca_object mr_bytes; do "$tools/ledger_look" $resource; done | paste -sd ' '; }

# storm NAME AT_ONCE DEATHS [in_group]: all that so many programs with objects held is back; the median of the times in
# $median_us
storm() {
    local p99 most
    run ${4:+"$4"} "$tools/reaping" "$2" "$3" "$seed" "$programs/verbs_objects" rc=4 mr=2:65536 srq=1 wait
    is "$1: what each of $3 held is back" "$status $log" "0 "
    read -r median_us p99 most <<< "$out"
    echo "# $1: back $median_us us after their ends (median), $p99 us (99 % of them), $most us (most)"
}

policy <<< 'version = 1'
start_sidecar
deaths=${RDMAQUOTA_LONG:+240}
storm "killed" 8 "${deaths:-120}" in_group
is "nothing is left in the ledger" "$(in_use)" "0 0 0"
is "nor in the kernel" "$(kernel sidecar hca_object | grep -v -x 0)" ""
# Were deaths seen in the daemon's own round alone, each would have to wait for the next one. Some may, on a busy machine.
at_once=0
for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do
    start "$programs/verbs_objects" rc=4 wait
    before=$(ask status rounds)
    kill -9 "$program"
    wait "$program" 2> /dev/null
    exec 9>&-
    eventually "what a killed program held is back" prints "0 0 0" in_use
    [ "$(ask status rounds)" != "$before" ] || at_once=$((at_once + 1))
done
is "deaths are seen when they happen ($at_once of 12)" "$([ $at_once -ge 3 ] && echo yes || echo $at_once)" yes
stop_sidecar

# --- the sidecar killed as well ----------------------------------------------------------------------
# watch_values: every value of rdma.max from now on
watch_values() {
    : > bounds
    (while :; do
        bound >> bounds
        sleep 0.1
    done) &
    watcher=$!
}
# change_limits: as an administrator would
change_limits() {
    (while :; do
        rdmaquota set rxe0 hca_object=2000 > /dev/null
        sleep 0.3
        rdmaquota set rxe0 hca_object=3000 > /dev/null
        sleep 0.3
    done) &
    changer=$!
}
end_job() { kill "$1"; wait "$1" 2> /dev/null; }

found='rxe0 hca_handle=50 hca_object=5000'
echo "$found" > $group/rdma.max
policy <<< 'version = 1
[tenant.default]
backstop = "/sidecar"
[tenant.default."*"]
hca_handle = 40
hca_object = 3000'
start "$programs/raw_uverbs" ioctl 100
watch_values
change_limits
unruly_sidecar "$seed"
deaths=${RDMAQUOTA_LONG:+96}
until [ "$(cat deaths)" -ge 3 ]; do storm "killed beside a killed sidecar" 8 "${deaths:-48}" in_group; done
end_job $changer
calm_sidecar
await "pd: 100 in the kernel, 0 charged" && ok "what goes around the quota is reported by the one that is left"
end_job $watcher
rdmaquota set rxe0 hca_object=1000 > /dev/null
bound_is "the backstop follows the limits" "rxe0 hca_handle=40 hca_object=1000"
stop_sidecar
is "an orderly end puts back what was found before all of them" "$(bound)" "$found"
is "rdma.max was always that or a limit" \
    "$(grep -v -x -e "$found" -e 'rxe0 hca_handle=40 hca_object=[23]000' bounds)" ""
is "nothing is left in the ledger after all that" "$(in_use)" "0 0 0"
proceed

echo "rxe0 hca_handle=max hca_object=max" > $group/rdma.max
finish
