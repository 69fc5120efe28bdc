#!/bin/bash
# renames_test.sh BUILD: an RDMA device that is renamed under running programs keeps their objects and its limits, in the ledger and in
# the guard, and nobody is accused of a bypass. Runs as root in the guest after an installation.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh"
# shellcheck source=test/integration/sidecar.sh
. "$here/sidecar.sh"
# shellcheck source=test/integration/guard.sh
. "$here/guard.sh"
objects=$programs/verbs_objects
first=$device
# rename NAME: of the device, which is `$device` from then on
rename() {
    rdma dev set "$device" name "$1" || not_ok "the kernel renames $device" "$1"
    device=$1
}
shown() { rdmaquota show --json | /usr/bin/python3 -c '
import json, sys
tenant = json.load(sys.stdin)["tenants"][0]
print(" ".join(name + ":" + str(cells[sys.argv[1]]["usage"]) for name, cells in tenant["devices"].items() if cells.get(sys.argv[1], {}).get("usage")))' "$1"; }

# --- by the ledger alone
policy << END
version = 1
[tenant.default."*"]
qp = 4
[tenant.default.renamed0]
mr = 1
END
start "$objects" rc=3 mr=2 wait
is "before the name changes, the limits of the old one hold" "$(grep -v rdmaquota running | grep -v waiting | xargs)" "rc: 3 of 3 mr: 2 of 2"
rename renamed0
is "show has the device by its new name, and what programs hold there" "$(shown qp)" renamed0:3
run "$objects" rc=3
is "programs that open it by the new name have what is left" "$(xargs <<< "$out")" "rc: 1 of 3, then EDQUOT"
has "the denial has the new name" "$log" "qp on renamed0 denied (EDQUOT): tenant default uses 4 of 4"
run "$objects" mr=1
is "the limits of the new name count what was created under the old one" "$(xargs <<< "$out")" "mr: 0 of 1, then EDQUOT"
proceed
is "at its end the program's objects are gone" "$(shown qp)" ""
run "$objects" mr=2
is "the limits of the new name hold" "$(xargs <<< "$out")" "mr: 1 of 2, then EDQUOT"
rename "$first"

# --- limits by what a rename does not change
netdev=$(cat "/sys/class/infiniband/$device/parent") guid=$(cat "/sys/class/infiniband/$device/node_guid")
policy << END
version = 1
[tenant.default."netdev:$netdev"]
qp = 3
[tenant.default."guid:$guid"]
mr = 2
[tenant.default."pci:0000:99:00.0"]
qp = 1
END
has "a selector without a device is named" "$(rdmaquota check policy.toml 2>&1)" "device pci:0000:99:00.0 is not on this node"
start "$objects" rc=9 mr=1 wait
is "limits by netdev hold" "$(grep rc: running)" "rc: 3 of 9, then EDQUOT"
rename renamed0
rdmaquota reload policy.toml > /dev/null 2>&1
run "$objects" rc=1 mr=3
is "they hold under the new name, and by GUID" "$(xargs <<< "$out")" "rc: 0 of 1, then EDQUOT mr: 1 of 3, then EDQUOT"
has "show has the limits at the device" "$(rdmaquota show --device renamed0 --resource qp)" " 3 "
rdmaquota set renamed0 qp=4 > /dev/null
run "$objects" rc=3
is "what is set by name is set there" "$(xargs <<< "$out")" "rc: 1 of 3, then EDQUOT"
proceed
rename "$first"

# --- with the sidecar and the guard
guard_policy deny 5 > policy.toml
cat >> policy.toml << END
[tenant.default.renamed0]
pd = 4
END
rdmaquota reload policy.toml > /dev/null 2>&1
start_sidecar
guard_is deny
held around "$programs/raw_uverbs" ioctl 3
start "$objects" rc=2 wait
is "the guard counts what goes around the library, and what does not" "$(counted default pd) $(counted default qp)" "4 2"
rename renamed0
looks_pass
is "it counts on under the new name" "$(counted default pd) $(counted default qp)" "4 2"
is "and nothing under the old one" "$(rdmaquota guard --json | grep -c "\"$first\"")" 0
try "$programs/raw_uverbs" ioctl 3
is "the limits of the new name hold" "$out" "pd: 0 of 3 EDQUOT"
proceed
looks_pass
try "$programs/raw_uverbs" ioctl 3
is "and give what has become free" "$out" "pd: 1 of 3 EDQUOT"
rename "$first"
followed
try "$programs/raw_uverbs" ioctl 3
is "by its old name it has the old limits" "$out" "pd: 2 of 3 EDQUOT"
release
looks_pass
lacks "no program was accused of a bypass but the one that goes around the library" \
    "$(grep -i 'bypass\|more than' sidecar.log | grep -v raw_uverbs)" verbs_objects
until_counted default pd 0
guard_policy deny 5 > policy.toml
cat >> policy.toml << END
[tenant.default."guid:$guid"]
cq = 4  # one is the program's own
END
rdmaquota reload policy.toml > /dev/null
rename renamed0
followed
run "$objects" cq=9
is "limits by GUID hold under the new name without a reload" "$(xargs <<< "$out")" "cq: 3 of 9, then EDQUOT"
try "$programs/verbs_objects_static" cq=9 wait
is "and in the guard" "$(grep cq: <<< "$out")" "cq: 3 of 9, then EDQUOT"
rename "$first"
stop_sidecar
rdmaquota guard off > /dev/null
finish
