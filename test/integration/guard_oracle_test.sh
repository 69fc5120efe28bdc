#!/bin/bash
# guard_oracle_test.sh BUILD: the oracle under the guard: the kernel's figures, the ledger, the guard and the oracle's own
# account agree whenever all rest; at first while the sidecar lives, then while it and programs are killed at random and the
# kernel's figures are sampled. RDMAQUOTA_SEED and RDMAQUOTA_STEPS. Runs as root in the guest.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh"
# shellcheck source=test/integration/sidecar.sh
. "$here/sidecar.sh"
# shellcheck source=test/integration/guard.sh
. "$here/guard.sh"
seed=${RDMAQUOTA_SEED:-$RANDOM}
steps=${RDMAQUOTA_STEPS:-1500}

# play NAME PHASE...: its checks are some of ours
play() {
    local status=0 line
    timeout 1200 "$1/test/oracle/oracle" --guard --seed "$seed" --steps "$steps" "${@:3}" > oracle.log || status=$?
    grep -v -E '^[0-9]+ passed, [0-9]+ failed$' oracle.log
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' oracle.log) || line='0 passed, 1 failed'
    passed=$((passed + ${line%% *}))
    line=${line#*, }
    failed=$((failed + ${line%% *}))
    is "$2" "$status" 0
}
# silent [ROW...]: a policy with the guard, and the node's rows
silent() {
    printf 'version = 1\n[log]\nlevel = "none"\n[sidecar]\nguard = "deny"\n' > policy.toml
    [ $# = 0 ] || printf '%s\n' '[node."*"]' "$@" >> policy.toml
    rdmaquota reload policy.toml > /dev/null
}

silent
start_sidecar
guard_is deny
play "$1" "the oracle plays with the guard" single limits threads
stop_sidecar

silent 'pd = 5' 'mr = 6'
summary() { rdma resource show "$device" | sed -n "s/.* $1 \([0-9]*\) .*/\1/p"; }
own_mrs=$(summary mr)
(
    trap 'echo $pds $mrs $samples > most; exit' TERM
    pds=0 mrs=0 samples=0
    while :; do
        [[ $(rdma resource show "$device") =~ \ pd\ ([0-9]+).*\ mr\ ([0-9]+) ]] || continue
        now=$((BASH_REMATCH[1] - own_pds)) && [ "$now" -le $pds ] || pds=$now
        now=$((BASH_REMATCH[2] - own_mrs)) && [ "$now" -le $mrs ] || mrs=$now
        samples=$((samples + 1))
    done
) &
sampler=$!
unruly_sidecar "$seed"
play "$1" "and while the sidecar is killed" threads processes
is "nobody was taken for one that goes around the quota" "$(grep -e ' bypass: ' lives.log)" ""
# Programs that go around the library are in the oracle's way; so they have a while of their own.
ways=("raw_uverbs ioctl 10" "around threads 10" "around child 10" "verbs_objects_static pd=9" "verbs_objects mr=9 pd=9")
if [ "${RDMAQUOTA_TIER-}" = all ]; then last=$((SECONDS + 60)); else last=$((SECONDS + 20)); fi
# shellcheck disable=SC2031 # the unruly sidecar has a generator of its own
RANDOM=$seed
# Until it has seen, too, what the checks below ask for.
until [ $SECONDS -ge $last ] && grep -q ' bypass: ' lives.log; do
    read -ra words <<< "${ways[RANDOM % ${#ways[@]}]}"
    "$programs/${words[0]}" "${words[@]:1}" < <(pause 0.$((RANDOM % 10))) > way 2>&1 &
    victim=$!
    pause 0.$((RANDOM % 10))
    kill -9 $victim 2> /dev/null
    wait $victim 2> /dev/null
done
kill $sampler
wait $sampler
calm_sidecar
guard_is deny
read -r pds mrs samples < most
echo "# of $samples samples, the kernel had $pds PDs and $mrs MRs at most"
is "at no moment the kernel had more than the node may have" "$([ "$pds" -le 5 ] && [ "$mrs" -le 6 ] && echo yes || echo "$pds $mrs")" yes
is "and it had nearly as many" "$([ "$pds" -ge 4 ] && echo yes || echo "$pds")" yes
is "nobody was killed" "$(grep -e ' killed: ' lives.log)" ""
has "who went around the quota is reported also with the guard" "$(cat lives.log)" " bypass: "
is "the guard refused some that went around the library" "$([ "$(counted node pd refused)" -gt 0 ] && echo yes)" yes
until_counted node pd 0
is "and nothing of them is left" "$(counted node pd) $(counted node mr) $(counted node hca_handle)" "0 0 0"
is "one guard is left" "$(find /sys/fs/bpf/rdmaquota -mindepth 1 -maxdepth 1 | wc -l)" 1
stop_sidecar
rdmaquota guard off > /dev/null
finish
