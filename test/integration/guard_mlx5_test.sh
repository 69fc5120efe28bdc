#!/bin/bash
# guard_mlx5_test.sh BUILD: the guard on the simulated mlx5_0, whose driver does what rxe's does not: an MR gets another length
# in place. Runs as root in the guest after an installation.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh" "$1" mlx5_0
# shellcheck source=test/integration/sidecar.sh
. "$here/sidecar.sh"
# shellcheck source=test/integration/guard.sh
. "$here/guard.sh"
guard_policy deny 100 > policy.toml
rdmaquota reload policy.toml > /dev/null
start_sidecar
guard_is deny
# around STEP...: a program from which the provider is hidden, until it waits; what it printed is in $out
around() {
    rm -f keys
    mkfifo keys
    # shellcheck disable=SC2016 # expanded by the inner shell
    unshare -m sh -c 'mount -t tmpfs tmpfs /etc/libibverbs.d && echo "driver mlx5" > /etc/libibverbs.d/mlx5.driver && exec "$@"' \
        sh "$programs/verbs_objects" -d "$device" "$@" wait < keys > tried 2>&1 &
    program=$!
    exec 8<> keys
    for _ in $(seq 300); do
        { grep -q waiting tried || ! kill -0 $program 2> /dev/null; } && break
        sleep 0.05
    done
    out=$(grep -v waiting tried | xargs)
}
leave() {
    echo >&8
    exec 8>&-
    wait $program
    until_counted default mr_bytes 0
}
around mr=1:4096 rereg=100000
is "an MR's new length counts" "$out, $(counted default mr_bytes)" "mr: 1 of 1 rereg: ok, 100000"
leave
around mr=2:4096 rereg=100000 rereg=50 rereg=4096
is "as it is at last" "$(counted default mr_bytes)" 8192
leave
around mr=1:4096 rereg=2000000
is "and is refused where there is no room" "$out, $(counted default mr_bytes)" "mr: 1 of 1 rereg: EDQUOT, 4096"
leave
is "nothing is left in the books" "$(counted default mr_bytes) $(counted default mr) $(counted default hca_object)" "0 0 0"
around rc=5
has "QPs are limited as on rxe" "$out" "rc: 3 of 5, then EDQUOT"
leave
stop_sidecar
rdmaquota guard off > /dev/null
finish
