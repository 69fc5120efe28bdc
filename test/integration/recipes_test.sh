#!/bin/bash
# recipes_test.sh BUILD: what `rdmaquota init` writes does what docs/recipes.md says. Runs as root in the guest after an installation.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh"
# shellcheck source=test/integration/sidecar.sh
. "$here/sidecar.sh"
# shellcheck source=test/integration/guard.sh
. "$here/guard.sh"
objects=$work/objects
cp "$programs/verbs_objects" "$objects"
cp "$programs/raw_uverbs" "$work/raw"
chmod 755 "$work"
for group in red blue; do groupadd $group; done
for user in alice bob carol inference; do useradd --no-create-home $user; done
usermod -a -G red bob
usermod -a -G blue carol
as_user() { exec setpriv --reuid="$1" --regid="$(id -g "$1")" --init-groups "${@:2}"; }
# in_group PATH COMMAND...
in_cgroup() {
    mkdir -p "/sys/fs/cgroup$1"
    echo $BASHPID > "/sys/fs/cgroup$1/cgroup.procs"
    exec "${@:2}"
}
# recipe KIND [OPTION...]: in force, and denies
recipe() {
    rdmaquota init "$@" > recipe.toml
    sed -i 's/^mode = "audit" /mode = "enforce" /' recipe.toml
    rdmaquota reload recipe.toml > /dev/null
}
limit() { rdmaquota set "$@" > /dev/null; }
made() { grep -o 'rc: [0-9]* of 9' running; }

rdmaquota init login > recipe.toml
has "init names the device, and what it has" "$(cat recipe.toml)" "# Devices: $device (at least "
has "a policy in audit mode denies nothing" "$(rdmaquota check recipe.toml)" "mode                               audit"

recipe login
limit 'user/{user}' '*' qp=3
start as_user alice "$objects" rc=9 wait
is "login: a user has the user's limit" "$(made)" "rc: 3 of 9"
(as_user alice "$objects" rc=9 wait) < /dev/null > other 2>&1
has "with all programs together" "$(cat other)" "rc: 0 of 9, then EDQUOT"
has "top by user shows how full the tenant is" "$(rdmaquota top --by user --batch --count 1 | xargs)" "alice user/alice $device 1 100 3"
lacks "show --summary leaves out who uses nothing" "$(rdmaquota show --summary)" user/bob
has "but for their number" "$(rdmaquota show --summary)" "tenants use nothing"
(as_user bob "$objects" rc=9 wait) < /dev/null > other 2>&1
has "and another user has as much" "$(cat other)" "rc: 3 of 9, then EDQUOT"
proceed

recipe ai --group red,blue
start_sidecar
for team in red blue; do limit $team '*' qp=2 --guarantee; done
limit node '*' qp=6
gets_four() { (as_user bob "$objects" rc=9 wait) < /dev/null 2>&1 | grep -o 'rc: [0-9]* of 9'; }
eventually "ai: a team gets what the others leave" prints "rc: 4 of 9" gets_four  # a busy node may take longer than grant_wait
start as_user bob "$objects" rc=9 wait
is "ai: a team may use what the others leave" "$(made)" "rc: 4 of 9"
(as_user carol "$objects" rc=9 wait) < /dev/null > other 2>&1
has "and each has what it is guaranteed" "$(cat other)" "rc: 2 of 9, then EDQUOT"
proceed
stop_sidecar

recipe inference
limit default '*' qp=1
limit serving '*' qp=2 --guarantee
limit serving '*' qp=4
start in_cgroup /system.slice/inference-1.service setpriv --reuid=inference --regid=inference --init-groups "$objects" rc=9 wait
is "inference: a service has its own limit" "$(made)" "rc: 4 of 9"
has "in its tenant" "$(rdmaquota which --pid $program)" "tenant serving: "
proceed

recipe storage
limit default '*' qp=1
start in_cgroup /system.slice/storage-1.service "$objects" rc=9 wait
is "storage: the server's programs are not refused" "$(made)" "rc: 9 of 9"
proceed
"$objects" rc=9 wait < /dev/null > other 2>&1
has "others are" "$(cat other)" "rc: 1 of 9, then EDQUOT"

recipe slurm
less=$(sed -n '/partition.debug/,$s/^qp = \([0-9]*\) .*/\1/p' recipe.toml | head -n 1)
is "slurm: a job of a partition has less" "$(rdmaquota slurm limits --partition debug | sed -n 's/.* qp *//p' | head -n 1)" "$less"

recipe kubernetes
has "kubernetes: a tenant has a device of CDI" "$(rdmaquota cdi team-a)" '"name": "team-a"'

recipe pods
sed -i 's/^guard = .*/guard = "deny"/' recipe.toml
rdmaquota reload recipe.toml > /dev/null
limit 'pods/{pod}' '*' pd=2
start_sidecar
guard_is deny
pod=/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice/cri-1.scope
try in_cgroup $pod "$work/raw" ioctl 9
is "pods: a pod without a provider has its limit" "$out" "pd: 2 of 9 EDQUOT"
try in_cgroup ${pod/pod1_2/pod3_4} "$work/raw" ioctl 9
is "and another one as much" "$out" "pd: 2 of 9 EDQUOT"
start in_cgroup ${pod/pod1_2/pod3_4} "$work/raw" ioctl 9
has "show --summary goes by the guard's count" "$(rdmaquota show --summary)" "2 of 2 pd on $device"
has "which does, too" "$(rdmaquota which --pid $program | xargs)" "pd 0 2 2 the tenant"
has "and room" "$(rdmaquota show pods/3_4 --json | tr '{' '\n' | grep '"kernel":2')" '"room":0'
has "and top" "$(rdmaquota top --batch --count 1 --resource pd)" "2      2    100"
held_by_guard() { rdmaquota show | grep -F "HELD BY THE GUARD ALONE WITH"; }
eventually "the pod's process is listed" held_by_guard
ok "and show says that the guard holds the process"
doctor=$(rdmaquota doctor)
has "as doctor does" "$doctor" "the guard alone holds it"
has "which names nothing as never held" "$doctor" "those that go around the library by the guard"
lacks "guard leaves out limits of which nothing is used" "$(rdmaquota guard)" mr_bytes
has "but for their number" "$(rdmaquota guard)" "other limits nothing is used"
has "explain says what allows more" "$(rdmaquota explain)" "to allow it: rdmaquota set pods/"
proceed
(in_cgroup ${pod/pod1_2/pod5} "$objects" pd=9 wait) < /dev/null > other 2>&1
has "also with the provider" "$(cat other)" "pd: 1 of 9, then EDQUOT"
stop_sidecar
rdmaquota guard off > /dev/null
finish
