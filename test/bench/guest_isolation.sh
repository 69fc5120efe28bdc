#!/bin/bash
# guest_isolation.sh BUILD SIZE PERCENT DEVICE NAME: how long a victim's calls take on the guest's only device, alone and beside
# attackers, without us (bare), with counts, with rates, and with rates and the guard (guarded). run.sh starts it in the guest that
# counts instructions as time, with rdmaquota installed. SIZE is quick, default or long; the attacker's rates are PERCENT of what the
# device does for it alone. Prints "NAME.VARIANT.ATTACKER.FIGURE VALUE" lines, and "cannot NAME_VARIANT REASON" for what the policy or
# the sidecar refuses.
set -eu
build=$1/test/bench size=$2 percent=$3 device=$4 name=$5
# shellcheck source=test/bench/guest_variants.sh
. "$(dirname "$0")/guest_variants.sh"
# shellcheck source=test/processes.sh
. "$(dirname "$0")/../processes.sh"
cd /run
useradd --no-create-home victim
useradd --no-create-home attacker
mount -t bpf bpf /sys/fs/bpf 2>/dev/null || :
ulimit -l unlimited
mkfifo input output

attacker_command=(setpriv --reuid=attacker --regid=attacker --init-groups)
sidecar_command=(rdmaquotad)
if [ "$device" = mlx5_0 ]; then
    # What they share is the adapter's queue, as on a node that has a processor for each: the victim gets this one first.
    victim=(--pause 500 qp=200 mr=200 open=100)
    attacker_command=(chrt --idle 0 "${attacker_command[@]}")
    sidecar_command=(chrt --idle 0 rdmaquotad)
    echo 1 >/sys/kernel/debug/mlx5sim/queue/slots
    echo 100 >/sys/kernel/debug/mlx5sim/queue/command_us
    echo 25 >/sys/kernel/debug/mlx5sim/queue/page_ns
else
    # They share a processor. A group takes so much of it that one in a hundred meets the scheduler.
    victim=(qp=100x8 mr=100x8 open=100x2 pingpong=100x8 bandwidth=8)
fi

# KIND.PROCESSES, and "around" for those that go around the library
largest=$((256 << 20))  # of an MR that attackers register
case $size in
    quick) attackers=(qp.4 mr_64k.4 around_mr_64k.4) ;;
    default) attackers=(mr_64k.1 mr_64k.4 mr_64k.16 mr_256m.4 qp.1 qp.4 qp.16 cq.4 pd.4 context.4 around_mr_64k.4 around_pd.4) ;;
    long)
        attackers=() largest=$((1 << 30))
        for kind in mr_64k mr_1g qp cq pd context around_mr_64k around_mr_1g around_pd; do
            for processes in 1 4 16 64; do attackers+=("$kind.$processes"); done
        done ;;
esac

# attack ATTACKER COMMAND...: runs the command beside them; their own figures are in /run/attack
attack() {
    local kind=${1%.*} processes=${1#*.} words=() word
    shift
    [[ $kind != around_* ]] || words=(--around)
    "${attacker_command[@]}" "$build/bench_verbs_attacker" ${words+"${words[@]}"} "${kind#around_}" "$processes" <input >output 2>/run/attack.log &
    exec 5>input 6<output
    read -r word <&6 || { cat /run/attack.log >&2; return 1; }
    [ "$word" = attacking ] || return
    "$@"
    exec 5>&-
    cat <&6 >/run/attack
    wait $!
}

suffer() { setpriv --reuid=victim --regid=victim --init-groups "$build/bench_verbs_victim" "${victim[@]}" >/run/victim; }
# figures PREFIX FILE...
figures() { sed "s/^/$name.$1./" "${@:2}"; }

# measure_all VARIANT
measure_all() {
    local attacker
    suffer  # the first run finds nothing in caches
    for _ in 1 2 3; do
        suffer
        figures "$1.alone" /run/victim
    done
    for attacker in "${attackers[@]}"; do
        # Without the guard nothing of ours is in the way of what goes around the library.
        case $attacker in around_*) case $1 in counts | rates) continue ;; esac ;; esac
        attack "$attacker" suffer
        figures "$1.$attacker" /run/victim
        figures "$1.$attacker.attack" /run/attack
    done
}

# What the device does for attackers alone: creations of QPs per second by four processes, and bytes registered by one
capacity() {
    attack "$1" sleep 0.5
    sed -n 's/^creations //p' /run/attack
}

counts='qp = 64
cq = 64
mr = 64
pd = 64
srq = 64
hca_handle = 64
mr_bytes = "4GiB"
'
# policy NAME GUARD RATES: into NAME.toml
policy() {
    {
        printf 'version = 1\n[sidecar]\nguard = "%s"\n' "$2"
        for tenant in victim attacker; do
            printf '[tenant.%s]\nmatch = [{ user = "%s" }]\n' $tenant $tenant
        done
        printf '[tenant.victim."*"]\nqp = 1000\nmr = 1000\nhca_handle = 100\n[tenant.attacker."*"]\n%s%s' "$counts" "$3"
    } >"$1.toml"
}

# try VARIANT POLICY COMMAND...: runs the command under the policy
try() {
    if rdmaquota reload "$2.toml" >/dev/null 2>/run/reload.log; then
        "${@:3}"
    else
        echo "cannot ${name}_$1 $(tail -n 1 /run/reload.log)"
    fi
}

under_guard() {
    "${sidecar_command[@]}" 2>/run/sidecar.log &
    local sidecar=$!
    until rdmaquota guard --json 2>/dev/null | grep -q '"state":"deny"'; do
        kill -0 $sidecar 2>/dev/null || { echo "cannot ${name}_guarded $(tail -n 1 /run/sidecar.log)"; return; }
        sleep 1
    done
    measure_all guarded
    kill $sidecar
    wait $sidecar || :
}

switch bare
creations=$(capacity qp.4)
registrations=$(capacity mr_256m.1)
# At least one
share() { awk -v all="$1" -v percent="$percent" 'BEGIN { part = int(all * percent / 100); print (part > 0 ? part : 1) }'; }
commands=$(share "$creations")
bytes=$(share $((registrations * (256 << 20))))
burst=$((bytes / 10 > largest ? bytes / 10 : largest))
figures capacity <<END
commands $creations
rate $commands
bytes_rate $bytes
END
rates="commands_per_s = { limit = $commands, burst = $((commands / 10 + 1)) }
registered_per_s = { limit = $bytes, burst = $burst }
"
policy counts off ""
policy rates off "$rates"
policy guarded deny "$rates"

measure_all bare
switch ours
try counts counts measure_all counts
try rates rates measure_all rates
try guarded guarded under_guard
