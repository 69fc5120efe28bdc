#!/bin/bash
# containers_test.sh BUILD: containers of podman and crun in tenants, by the CDI specification and its hook, with images of
# three Debian releases. Runs as root in the guest, in a root file system with podman; test/vm/roots.sh has made the images.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh"
# shellcheck source=test/integration/sidecar.sh
. "$here/sidecar.sh"
# shellcheck source=test/integration/page.sh
. "$here/page.sh"
chmod 755 "$work"
declare -A roots=() abi=([bookworm]=34 [trixie]=34 [sid]=65)
# At a path that other users may go to, as those of a user namespace.
for release in bookworm-image trixie sid; do
    root=$("$here/../vm/roots.sh" "$release") || exit 77
    roots[${release%-image}]=$work/images/$release
    mkdir -p "$work/images/$release"
    mount --bind "$root" "$work/images/$release"
done

# One storage for all, in memory. Containers have no network, and get the adapter as any other device.
cat > /etc/containers/storage.conf << END
[storage]
driver = "vfs"
graphroot = "$work/storage"
runroot = "$work/run"
END
cat > /etc/containers/containers.conf << END
[containers]
netns = "none"
volumes = ["$programs:/programs:ro"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
runtime = "crun"
END

# contained TENANT RELEASE OPTION... -- COMMAND...: in the foreground
contained() {
    local tenant=$1 root=${roots[$2]} options=()
    shift 2
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    shift
    podman run --rm -i --device "rdmaquota.io/tenant=$tenant" --device /dev/infiniband/uverbs0 --ulimit memlock=-1:-1 \
        ${options+"${options[@]}"} --rootfs "$root" "$@"
}
objects=/programs/verbs_objects
doctor() { rdmaquota doctor | grep ' containers: '; }

# --- as docs/containers.md has it, with an image --------------------------------------------------------
tar -C "${roots[bookworm]}" --exclude ./usr/share --exclude ./var -c . | podman import - rdma > import.log 2>&1 ||
    not_ok "there is an image" "$(cat import.log)"
{ echo 'version = 1'; block containers.md 'in a user namespace'; } > /etc/rdmaquota/rdmaquota.toml
block containers.md 'write the specification' > commands
run=$(grep '^podman' commands)
succeeds "the page's commands write the specification" bash -e -c "$(grep -v '^podman' commands)"
has "which doctor finds whole" "$(doctor)" "is whole, for tenant blue"
has "the page's container is held to the page's quota" "$(bash -c "${run/IMAGE/localhost/rdma $objects rc=70}" 2>&1)" \
    "rc: 64 of 70, then EDQUOT"
rm /etc/cdi/*

policy << 'END'
version = 1
[tenant.default."*"]
qp = 9
[tenant.blue."*"]
qp = 3
[tenant.red."*"]
qp = 2
[tenant."physics/atlas"."*"]
qp = 1
END
for tenant in blue red physics/atlas; do
    succeeds "a specification for $tenant" rdmaquota cdi $tenant --output "/etc/cdi/rdmaquota-${tenant/\//-}.json"
done
is "the doctor finds each of them whole" "$(doctor | grep -c ' is whole, for tenant ')" 3

# cgroup_of PID, show_of TENANT FIELD: of the first process
cgroup_of() { sed -n 's/^0:://p' "/proc/$1/cgroup"; }
show_of() {
    rdmaquota show "$1" --json | /usr/bin/python3 -c '
import json, sys
print([p.get(sys.argv[1]) for p in json.load(sys.stdin)["tenants"][0]["processes"]][0])' "$2"
}
# inside RELEASE: a container's first process holds queues; what the node says of it
inside() {
    local pid cgroup
    start contained blue "$1" -- $objects rc=9 wait
    has "an image of $1 is held to its tenant's quota" "$(cat running)" "rc: 3 of 9, then EDQUOT"
    has "and is told of it" "$(cat running)" "tenant blue uses 3 of 3"
    pid=$(show_of blue pid) cgroup=$(show_of blue cgroup)
    is "show has the node's pid" "$(readlink "/proc/$pid/exe")" $objects
    is "and the container's" "$(show_of blue container_pid)" 1
    is "and its cgroup" "$cgroup" "$(cgroup_of "$pid")"
    has "which is the container's" "$cgroup" /libpod-
    is "as people read it" "$(rdmaquota show blue | awk '$2 == "1" { print $1, $3 }')" "$pid $cgroup"
    has "which knows the tenant by its directory" "$(rdmaquota which --pid "$pid")" "tenant blue: its directory is mounted there"
    has "and events do not take it for the node's init" "$(rdmaquota events --kind denied | tail -n 1)" "pid 1 of a container verbs_objects"
    has "of libibverbs $1" "$(cat "/proc/$pid/maps")" "librxe-rdmav${abi[$1]}.so"
    # Without the mounts, the cgroup alone says it.
    has "a process that joins the cgroup is in the tenant" \
        "$(sh -c "echo \$\$ > /sys/fs/cgroup$cgroup/cgroup.procs; exec rdmaquota which")" "tenant blue: a container was bound to tenant blue"
    proceed
}
for release in bookworm trixie sid; do inside $release; done

# --- what binds is gone with its container -----------------------------------------------------------
start contained red trixie -- $objects rc=9 wait
cgroup=$(show_of red cgroup)
rdmaquota reload policy.toml > /dev/null
has "a reload keeps what is bound" "$(sh -c "echo \$\$ > /sys/fs/cgroup$cgroup/cgroup.procs; exec rdmaquota which")" "tenant red"
proceed
rdmaquota reload policy.toml > /dev/null
mkdir -p "/sys/fs/cgroup$cgroup"
has "the same name later is nobody's" "$(sh -c "echo \$\$ > /sys/fs/cgroup$cgroup/cgroup.procs; exec rdmaquota which")" "tenant default"

# --- two tenants ------------------------------------------------------------------------------------
start contained blue trixie -- $objects rc=9 wait
out=$(contained red sid -- $objects rc=9 2>&1 < /dev/null)
has "beside a full tenant another one has its own quota" "$out" "rc: 2 of 9, then EDQUOT"
out=$(contained red sid -- sh -c 'cd /run/rdmaquota; ls; echo > limits-5; ls -d ../rdmaquota/tenants; echo end' 2>&1 < /dev/null)
has "it sees its own directory" "$out" limits-5
has "which root in there cannot write" "$out" "Read-only file system"
has "and no other tenant's" "$out" "tenants': No such file"
has "to the end" "$out" end
proceed
has "a tenant below another one has its own, too" "$(contained physics:atlas sid -- $objects rc=9 2>&1 < /dev/null)" \
    "rc: 1 of 9, then EDQUOT"

# --- what root in a container does to its own ledger costs its own tenant only --------------------------
start contained blue trixie -- $objects rc=2 wait rc=9
free_before=$(df --output=avail /run | tail -n 1)
# shellcheck disable=SC2016 # expanded in the container
out=$(contained red sid -- sh -c 'cd /run/rdmaquota/ledgers
    for file in $(find . -type f); do head -c 1000000 /dev/urandom | dd of="$file" conv=notrunc status=none; done
    echo overwritten $(find . -type f | grep -c .)
    head -c 1G /dev/zero > fill; rm fill
    mount -o remount,rw /run/rdmaquota; touch /run/rdmaquota/new
    ln -s /run/rdmaquota/tenants/blue/here/ledgers/5 5.unusable.1
    umount -l /run/rdmaquota/ledgers; ls -d /run/rdmaquota/ledgers/5' 2>&1 < /dev/null)
is "root in a container can write its own ledger" "$(grep -c '^overwritten [1-9]' <<< "$out")" 1
has "can fill it up to a bound" "$out" "No space left on device"
has "cannot remount its directory" "$out" "/run/rdmaquota/new': Read-only file system"
is "nor unmount its ledger" "$(tail -n 1 <<< "$out")" /run/rdmaquota/ledgers/5
free_after=$(df --output=avail /run | tail -n 1)
if [ $((free_before - free_after)) -lt 20000 ]; then ok "the node's /run has room"; else not_ok "the node's /run has room" "$free_before, then $free_after KiB"; fi
is "the other tenant's books are right" "$(rdmaquota show blue | awk -v device="$device" '$1 == device && $2 == "qp" { print $3 }')" 2
proceed
has "and its limit holds" "$(cat running)" "rc: 1 of 9, then EDQUOT"
rdmaquota reload policy.toml > /dev/null 2>&1
has "a reload mends what was overwritten" "$(contained red sid -- $objects rc=9 2>&1 < /dev/null)" "rc: 2 of 9, then EDQUOT"

# --- with as few rights as can be -------------------------------------------------------------------
few=(--read-only --cap-drop all --security-opt no-new-privileges)
has "read-only, without rights, as a user" "$(contained blue trixie "${few[@]}" --user 1000:1000 -- $objects rc=9 2>&1 < /dev/null)" "rc: 3 of 9, then EDQUOT"
# Whose root may make the places of mounts.
root=${roots[bookworm]}
find "$root" -xdev -maxdepth 3 -type d -exec chown 100000:100000 {} +
chown 100000:100000 "$root"/run/.containerenv "$root"/etc/{hosts,hostname,resolv.conf} "$root"/etc/libibverbs.d/rdmaquota.driver \
    "$root"/usr/lib/rdmaquota/*
mapped=(--uidmap 0:100000:65536 --gidmap 0:100000:65536)
has "in a user namespace" \
    "$(contained blue bookworm --read-only "${mapped[@]}" -- $objects rc=9 2>&1 < /dev/null)" "rc: 3 of 9, then EDQUOT"
# As its root, to whom alone crun gives the adapter there.
has "read-only and without rights there, too" "$(contained blue bookworm "${few[@]}" "${mapped[@]}" -- $objects rc=9 2>&1 < /dev/null)" "rc: 3 of 9, then EDQUOT"

# --- the sidecar takes out what is left -----------------------------------------------------------------
start_sidecar
start contained blue trixie -- $objects rc=1 wait
id=$(show_of blue cgroup)
id=${id##*/}
is "the running policy has the container" "$(grep -c -a "$id" /run/rdmaquota/policy-5)" 1
proceed
for _ in $(seq 90); do
    grep -q -a "$id" /run/rdmaquota/policy-5 || break
    sleep 0.5
done
is "and not when it has ended" "$(grep -c -a "$id" /run/rdmaquota/policy-5)" 0
stop_sidecar

# --- the guard holds what the provider cannot -----------------------------------------------------------
# shellcheck source=test/integration/guard.sh
. "$here/guard.sh"
# A libibverbs of a private ABI that has no provider of ours: it differs in the names of the files that it loads.
libraries=/usr/lib/$(gcc -print-multiarch)
root=${roots[trixie]}
verbs=$(basename "$(realpath "$root$libraries/libibverbs.so.1")")
LC_ALL=C sed 's/-rdmav34\.so/-rdmav99.so/' "$root$libraries/$verbs" > unknown_verbs
cp "$root$libraries/libibverbs/librxe-rdmav34.so" unknown_rxe
unknown=(--volume "$work/unknown_verbs:$libraries/$verbs:ro" --volume "$work/unknown_rxe:$libraries/libibverbs/librxe-rdmav99.so:ro")
out=$(contained blue trixie "${unknown[@]}" -- $objects rc=9 2>&1 < /dev/null)
has "a libibverbs that is not known says that it has no provider" "$out" \
    "couldn't load driver '/usr/lib/rdmaquota/librdmaquota-rdmav99.so'"
has "and its program is not held by one" "$out" "rc: 9 of 9"
# What a libibverbs linked with musl does, and prints.
loader=/lib/ld-musl-$(uname -m).so.1
succeeds "a loader is linked with musl" musl-gcc -o "$work/load_musl" "$here/../programs/load_libraries.c"
out=$(contained blue trixie --volume "$work/load_musl:/load_musl:ro" --volume "$(realpath "$loader"):$loader:ro" -- \
    /load_musl /usr/lib/rdmaquota/librdmaquota-rdmav34.so 2>&1 < /dev/null)
has "musl says that it cannot load the provider" "$out" "(needed by /usr/lib/rdmaquota/librdmaquota-rdmav34.so)"

succeeds "a program is linked with musl" musl-gcc -static -idirafter /usr/include -idirafter "/usr/include/$(gcc -print-multiarch)" \
    -Dstrerrorname_np=strerror -o "$work/raw_musl" "$here/../programs/raw_uverbs.c"
cat > policy.toml << 'END'
version = 1
[sidecar]
guard = "deny"
[tenant.default."*"]
pd = 9
[tenant.blue."*"]
qp = 3
pd = 4
END
rdmaquota reload policy.toml > /dev/null
start_sidecar
guard_is deny
out=$(contained blue trixie --volume "$work/raw_musl:/raw_musl:ro" -- /raw_musl ioctl 9 2>&1 < /dev/null)
has "a program linked with musl that knows no verbs library is held to its tenant's quota" "$out" "pd: 4 of 9 Quota exceeded"
has "an unchanged one is, too" "$(contained blue sid -- $objects pd=9 2>&1 < /dev/null)" "pd: 3 of 9, then EDQUOT"
out=$(contained blue trixie "${unknown[@]}" -- $objects pd=9 2>&1 < /dev/null)
has "and one whose libibverbs is not known" "$out" "pd: 3 of 9, then EDQUOT"
is "the refusals are the tenant's" "$([ "$(counted blue pd refused)" -gt 0 ] && echo yes)" yes
is "and nobody else's" "$(counted default pd refused)" 0
stop_sidecar
rdmaquota guard off > /dev/null

# --- a tenant that is gone --------------------------------------------------------------------------
printf 'version = 1\n[tenant.blue."*"]\nqp = 3\n' > policy.toml
rdmaquota reload policy.toml > /dev/null
has "the doctor says whose specification is for a tenant that is gone" "$(doctor)" \
    "/etc/cdi/rdmaquota-red.json: the running policy has no tenant 'red'"
out=$(contained red sid -- $objects rc=1 2>&1 < /dev/null)
has "a container of a tenant that is gone does not start" "$out" "stat'ing file \`/run/rdmaquota/tenants/red/here"
mkdir -p /run/rdmaquota/tenants/red/here/ledgers
out=$(contained red sid -- $objects rc=1 2>&1 < /dev/null)
has "nor where its directory is there, by the hook" "$out" "error executing hook"
lacks "nor creates anything" "$out" "rc: 1 of 1"

finish
