#!/bin/sh
# guest_tenants.sh BUILD OPENINGS REPEATS DEVICE NAME: what listing, opening and closing the device costs a user, by policy: `default`
# of a policy without tenants; an instance of a template that is matched by group (`instance`); and the same where a
# tenant before it is matched by cgroup (`cgroup`). run.sh starts it in the guest that counts instructions as time, with
# rdmaquota installed and far limits. Prints "NAME.POLICY.FIGURE VALUE" lines.
set -eu
build=$1/test/bench openings=$2 repeats=$3 device=$4 name=$5
here=$(dirname "$0")
# shellcheck source=test/bench/guest_variants.sh
. "$here/guest_variants.sh"
switch ours
cd /run
groupadd benchers
useradd --no-create-home --groups benchers bench

cp "$here/far_limits.toml" default.toml
{
    cat default.toml
    printf '[tenant."user/{user}"]\nmatch = [{ group = "benchers" }]\n'
    sed -n '/^\[tenant.default/,$ p' default.toml | sed 's|^\[tenant.default|[tenant."user/{user}"|'
} >instance.toml
{
    sed '/^\[tenant."user/,$ d' instance.toml
    printf '[tenant.job]\nmatch = [{ cgroup = "/slurm/**/job_*", members = ["bench"] }]\n'
    sed -n '/^\[tenant."user/,$ p' instance.toml
} >cgroup.toml

open_as_user() { setpriv --reuid=bench --regid=bench --init-groups "$build/bench_open_device"; }
expect() { # POLICY
    case $1 in default) echo default ;; *) echo user/bench ;; esac
}
tenant_of_user() { setpriv --reuid=bench --regid=bench --init-groups rdmaquota which | sed -n 's/^tenant \([^:]*\):.*/\1/p'; }

i=0
while [ $i -lt "$repeats" ]; do
    i=$((i + 1))
    for policy in default instance cgroup; do
        rdmaquota reload $policy.toml >/dev/null
        tenant=$(tenant_of_user)
        [ "$tenant" = "$(expect $policy)" ] || { echo "the user is in tenant $tenant" >&2; exit 1; }
        open_as_user >/dev/null
        for _ in $(seq "$openings"); do open_as_user | sed "s/^/$name.$policy./"; done
    done
done
