#!/bin/bash
# units.sh BUILD DEBS: the packages in DEBS where a system runs: their units under this release's own systemd, the guard in its
# own kernel. Runs as root in the guest with --systemd, in a release's root file system in which what the packages depend on is
# installed; BUILD has the test programs.
set -u
until systemctl start basic.target > /dev/null 2>&1; do sleep 0.2; done
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/integration/tap.sh
. "$here/../integration/tap.sh"
objects=$1/test/programs/verbs_objects
raw=$1/test/programs/raw_uverbs
# What a machine's image may forbid, and what takes the emulator minutes.
rm -f /usr/sbin/policy-rc.d /var/lib/man-db/auto-update
cd /tmp || exit 1

units() { systemctl "$1" rdmaquota rdmaquotad | xargs; }
shown() { systemctl show --value -p "$1" rdmaquotad; }
pds() { "$raw" ioctl 5 < /dev/null | head -n 1; }
guarded() {
    for _ in $(seq 300); do rdmaquota guard --json 2> /dev/null | grep -q '"state":"deny"' && return; sleep 0.2; done
    not_ok "the guard begins" "$(rdmaquota guard 2>&1)" "$(journalctl -q --no-pager -o cat -u rdmaquotad | tail -n 5)"
}

succeeds "the packages are installed where a system runs" dpkg -i "$2"/*.deb
[ "$failed" = 0 ] || { finish; exit 1; }
is "which enables their units" "$(units is-enabled)" "enabled enabled"
is "and starts them" "$(units is-active)" "active active"
is "systemd has nothing against them" "$(journalctl -q --no-pager -o cat _PID=1 | grep -i rdmaquota | grep -i -E 'unknown|ignor|fail|deprecat')" ""
succeeds "doctor finds nothing wrong" rdmaquota doctor
has "it says that the sidecar will run after the next boot, too" "$(rdmaquota doctor)" "sidecar: it runs, and will after the next boot"

printf 'version = 1\n[sidecar]\nguard = "deny"\n[tenant.default."*"]\nqp = 2\npd = 3\n' > /etc/rdmaquota/rdmaquota.toml
rdmaquota reload > /dev/null
guarded
is "the kernel refuses what goes around the library" "$(pds)" "pd: 3 of 5 EDQUOT"
has "the library what does not" "$("$objects" rc=5 2>&1)" "rc: 2 of 5, then EDQUOT"
succeeds "doctor finds nothing wrong with the guard" rdmaquota doctor
kill -9 "$(shown MainPID)"
is "the guard goes on when the sidecar is killed" "$(pds)" "pd: 3 of 5 EDQUOT"
for _ in $(seq 300); do [ "$(shown NRestarts)" = 0 ] || break; sleep 0.2; done
guarded
is "systemd starts it again, and the kernel refuses" "$(pds)" "pd: 3 of 5 EDQUOT"
is "the unit is in order" "$(units is-active)" "active active"

succeeds "the packages are purged" dpkg -P rdmaquota-slurm rdmaquotad rdmaquota librdmaquota-provider
is "no guard and no unit is left" "$(ls -d /sys/fs/bpf/rdmaquota /run/rdmaquota /etc/systemd/system/*/rdmaquota* 2> /dev/null)" ""
is "the kernel refuses nothing" "$(pds)" "pd: 5 of 5"
finish
