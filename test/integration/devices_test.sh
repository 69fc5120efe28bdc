#!/bin/bash
# devices_test.sh BUILD: a tenant with `devices` lists and opens these only, by the provider and in the guard; so do the tenants below it.
# Runs as root in the guest after an installation.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh"
# shellcheck source=test/integration/sidecar.sh
. "$here/sidecar.sh"
# shellcheck source=test/integration/guard.sh
. "$here/guard.sh"
objects=$programs/verbs_objects
listed() { ibv_devices 2> /dev/null | awk 'NR > 2 { print $1 }' | sort | xargs; }
opens() { "$objects" -d "$1" pd=1 2>&1 | grep -v rdmaquota | head -1; }
another_device other0

policy << END
version = 1
[tenant.default]
devices = ["$device"]
END
is "only the tenant's devices are listed" "$(listed)" "$device"
is "they can be used" "$(opens "$device")" "pd: 1 of 1"
lacks "no other can" "$(opens other0)" "pd: 1 of 1"
has "show has the limit" "$(rdmaquota show --limits | grep hca_handle | xargs)" "* hca_handle 0 policy"
rdmaquota set other0 hca_handle=2 > /dev/null
is "a device whose handles are set is listed at once" "$(listed) $(opens other0)" "other0 $device pd: 1 of 1"
rdmaquota unset other0 hca_handle > /dev/null
run rdmaquota set '*' hca_handle=2
has "handles of all devices at once are refused" "$log" "name one of them instead of '*'"
is "as before" "$(listed)" "$device"

mv policy.toml before.toml
policy << END
version = 1
mode = "audit"
[tenant.default]
devices = ["$device"]
END
is "an audit hides nothing" "$(listed)" "other0 $device"
policy << END
version = 1
[tenant.default."*"]
hca_handle = 0
END
is "without devices, what cannot be opened is listed" "$(listed)" "other0 $device"
policy << END
version = 1
[tenant.default]
devices = []
END
is "a tenant can have no device" "$(listed)" ""

policy << END
version = 1
[tenant.lab]
devices = ["netdev:link_other0"]
[tenant."lab/one"]
match = [{ cgroup = "/one", members = ["*"] }]
END
is "the tenant below has the devices of the one above, here by a selector" "$(in_cgroup one ibv_devices | awk 'NR > 2 { print $1 }')" other0
is "others list all" "$(listed)" "other0 $device"
rmdir /sys/fs/cgroup/one

# --- by the guard, of a program that goes around the provider
{
    guard_policy deny 5
    echo '[tenant.default]'
    echo "devices = [\"$device\"]"
} > policy.toml
rdmaquota reload policy.toml > /dev/null 2>&1
start_sidecar
guard_is deny
is "the guard opens the tenant's devices" "$("$programs/verbs_objects_static" -d "$device" pd=1 2> /dev/null)" "pd: 1 of 1"
lacks "and no other" "$("$programs/verbs_objects_static" -d other0 pd=1 2>&1)" "pd: 1 of 1"
stop_sidecar
rdmaquota guard off > /dev/null
no_device other0
finish
