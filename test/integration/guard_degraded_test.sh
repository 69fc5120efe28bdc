#!/bin/bash
# guard_degraded_test.sh BUILD: where there can be no guard, the sidecar, the CLI and doctor say why, and what netlink shows is
# still reported. Runs as root in the guest after an installation.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh"
# shellcheck source=test/integration/sidecar.sh
. "$here/sidecar.sh"
# shellcheck source=test/integration/guard.sh
. "$here/guard.sh"
doctor_has_answer() { said=$(rdmaquota doctor | grep -F ' guard') && [[ $said != *"does not answer"* ]]; }
# A sidecar that has just begun may answer late.
doctor_says() {
    local said=''
    eventually "the sidecar answers doctor" doctor_has_answer
    echo "$said"
}
guard_policy deny 5 > policy.toml
rdmaquota reload policy.toml > /dev/null
has "doctor says that no sidecar runs" "$(doctor_says)" "the policy asks for it, but no rdmaquotad answers"

# without NAME WORDS COMMAND...: a sidecar that is started by COMMAND has no guard, and says why in WORDS
without() {
    : > sidecar.log
    "${@:3}" 2>> sidecar.log &
    sidecar=$!
    await 'there is no guard'
    has "$1: the log says why" "$line" "$2"
    is "there is no guard" "$(state)" off
    has "the command says why" "$(rdmaquota guard)" "$2"
    has "so does doctor" "$(doctor_says)" "the kernel has none"
    "$programs/raw_uverbs" ioctl 10 < forever > held 2>&1 &
    holder=$!
    # Other pids cannot be told from a pid namespace of its own.
    if [[ $1 != *namespace* ]]; then
        await 'bypass'
        has "who goes around is reported" "$line" "pid $holder (raw_uverbs) on $device"
    fi
    kill $holder
    wait $holder 2> /dev/null
    kill_all_of "$sidecar"
    wait "$sidecar" 2> /dev/null
}
# kill_all_of PID: it and what it has started, which may be pid 1 of a namespace
kill_all_of() {
    local child
    for child in $(cat "/proc/$1/task/$1/children" 2> /dev/null); do kill -9 "$child"; done
    kill -9 "$1" 2> /dev/null
}
without "without CAP_SYS_ADMIN" "not permitted" \
    setpriv --no-new-privs --inh-caps -all --bounding-set -all,+sys_ptrace,+sys_chroot,+dac_override rdmaquotad
without "in a pid namespace of its own" "this one has its own" unshare --pid --fork --mount-proc rdmaquotad
# shellcheck disable=SC2016
without "without type information" "no type information" \
    unshare --mount sh -c 'mount -t tmpfs tmpfs /sys/kernel/btf && exec rdmaquotad'

# Two resources are bounded all the same.
make_group
{ guard_policy deny 5; printf 'hca_handle = 4\nhca_object = 40\n[tenant.default]\nbackstop = "/sidecar"\n'; } > policy.toml
rdmaquota reload policy.toml > /dev/null
# shellcheck disable=SC2016
unshare --mount sh -c 'mount -t tmpfs tmpfs /sys/kernel/btf && exec rdmaquotad' 2> sidecar.log &
sidecar=$!
bound_is "without type information a cgroup is bounded" "$device hca_handle=4 hca_object=40"
kill "$sidecar"
wait "$sidecar" 2> /dev/null
guard_policy deny 5 > policy.toml
rdmaquota reload policy.toml > /dev/null

start_sidecar
guard_is deny
has "with all of it, doctor is content" "$(doctor_says)" "the kernel refuses what exceeds a limit"
stop_sidecar
has "doctor says that the kernel keeps it" "$(doctor_says)" "no sidecar leads it"
rdmaquota guard off > /dev/null

# What the kernel does not keep.
# shellcheck disable=SC2016
unshare --mount sh -c 'mount -t bpf -o ro bpf /sys/fs/bpf && exec rdmaquotad' 2> sidecar.log &
sidecar=$!
await 'does not keep the guard'
ok "a guard that cannot be pinned is told of"
guard_is deny
has "doctor warns of it" "$(doctor_says)" "does not keep the guard"
kill -STOP "$sidecar"
out=$(rdmaquota guard off 2>&1)
is "guard off cannot reach it while the sidecar is stopped" $? 1
has "and says so" "$out" "end rdmaquotad"
kill -CONT "$sidecar"
kill -9 "$sidecar"
wait "$sidecar" 2> /dev/null
rdmaquota guard off > /dev/null

# The last one, since this kernel stays so.
echo confidentiality > /sys/kernel/security/lockdown
without "in a locked down kernel" "locked down (confidentiality)" rdmaquotad
finish
