#!/bin/bash
# hardened_test.sh BUILD: programs whose mounts hide the quota directory, or show it read-only, are held to their limits:
# hardened units under a real systemd, and sandboxes. Runs as root in the guest with --systemd, after an installation.
set -u
until systemctl start basic.target > /dev/null 2>&1; do sleep 0.2; done
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh"
# shellcheck source=test/integration/sidecar.sh
. "$here/sidecar.sh"
# Where no sandbox hides it.
cp "$programs/verbs_objects" /usr/local/bin/
mkfifo -m 666 /var/lib/forever
exec 6<> /var/lib/forever
second=/dev/infiniband/rdmaquota
groupadd many
useradd --no-create-home late

mkdir -p /etc/rdmaquota
cat > /etc/rdmaquota/rdmaquota.toml << 'END'
version = 1
[process."*"]
qp = 2
[tenant.services]
match = [{ unit = "held-*.service", members = ["*"] }]
[tenant.closed]
match = [{ unit = "closed-*.service" }]
[tenant."user/{user}"]
match = [{ group = "many" }]
[sidecar]
metrics_port = 9555
END
systemctl daemon-reload
succeeds "the policy is in force" systemctl start rdmaquota
is "in one file system at two places" "$(stat -c %d:%i /run/rdmaquota)" "$(stat -c %d:%i $second)"
has "of which the second is read-only" "$(touch $second/policy 2>&1)" "Read-only file system"
is "and open to all users" "$(stat -c %a /dev/infiniband $second | xargs)" "755 755"
succeeds "the sidecar runs" systemctl start rdmaquotad

# unit NAME PROPERTY...: a unit whose program asks for four QPs, and waits; its pid in $pid, what it said in NAME
unit() {
    local name=$1 words=() property
    shift
    for property; do words+=(--property="$property"); done
    systemd-run --quiet --unit "$name" --property="StandardOutput=append:$work/$name" \
        --property="StandardError=append:$work/$name" --property=StandardInput=file:/var/lib/forever "${words[@]}" \
        /usr/local/bin/verbs_objects rc=4 wait
    eventually "the program of $name waits" contains "$name" waiting
    pid=$(systemctl show --value -p MainPID "$name")
}
# shown TENANT PID: the line of the process in `show`
shown() { rdmaquota show "$1" --json | tr '{' '\n' | grep -o "\"pid\":$2,.*\"comm\":\"[^\"]*\"\|\"comm\":\"[^\"]*\".*\"pid\":$2,"; }
# is_held NAME TENANT LABEL: made at most two of four QPs, and `show` has it by its pid and name
is_held() {
    has "$3 is held" "$(cat "$1")" "rc: 2 of 4, then EDQUOT"
    has "and shown" "$(shown "$2" "$pid")" verbs_objects
    lacks "with a command that an administrator can use" "$(cat "$1")" "--dir"
}
# held NAME PROPERTY...: a unit of these is held
held() {
    local name=held-$1
    shift
    unit "$name" "$@"
    is_held "$name" services "a unit with $*"
    systemctl stop "$name"
}
# sandbox NAME OPTION...: the same in bubblewrap
sandbox() {
    local name=$1
    shift
    bwrap --ro-bind / / "$@" --dev-bind /dev /dev --proc /proc /usr/local/bin/verbs_objects rc=4 wait \
        < /var/lib/forever > "$name" 2>&1 &
    local outer=$!
    eventually "the program in $* waits" contains "$name" waiting
    pid=$(< "/proc/$outer/task/$outer/children")
    pid=${pid% }
    is_held "$name" default "a sandbox with $*"
    kill "$pid"
    wait "$outer" 2> /dev/null
}

held plain
held strict ProtectSystem=strict
held dynamic DynamicUser=yes
held tmpfs TemporaryFileSystem=/run
held inet ProtectSystem=strict "RestrictAddressFamilies=AF_INET"
held users ProtectSystem=strict PrivateUsers=yes
held nofile ProtectSystem=strict LimitNOFILE=6
held run ReadOnlyPaths=/run
held full ProtectSystem=full NoNewPrivileges=yes PrivateTmp=yes ProtectProc=invisible MemoryDenyWriteExecute=yes SystemCallFilter=@system-service
held inaccessible InaccessiblePaths=/run/rdmaquota
usermod -a -G many late
unit late-1 TemporaryFileSystem=/run User=late Group=late SupplementaryGroups=many
is_held late-1 user/late "a user whose tenant the sidecar makes when it asks"
systemctl stop late-1
sandbox bwrap_ro
sandbox bwrap_tmpfs --tmpfs /run

# --- where nothing can be written, administrators are told what helps ---------------------------------
metrics() { /usr/bin/python3 -c 'import urllib.request as u
print(u.urlopen("http://127.0.0.1:9555/metrics").read().decode())'; }
journal_has() { journalctl -q --no-pager -o cat -u rdmaquotad | grep -qF "$1"; }
cat > /etc/systemd/system/held-frozen.service << END
[Service]
ReadOnlyPaths=/
ExecStart=/usr/local/bin/verbs_objects rc=4 wait
StandardInput=file:/var/lib/forever
StandardOutput=append:$work/frozen
StandardError=append:$work/frozen
END
systemctl daemon-reload
systemctl start held-frozen
eventually "the program waits" contains frozen waiting
pid=$(systemctl show --value -p MainPID held-frozen)
has "a unit with ReadOnlyPaths=/ is not held" "$(cat frozen)" "rc: 4 of 4"
has "and says so" "$(cat frozen)" "Read-only file system"
eventually "the sidecar reports it" journal_has "bypass: pid $pid (verbs_objects) on rxe0 in unit held-frozen.service"
has "to Prometheus by its unit" "$(metrics)" \
    'rdmaquota_uncounted_processes{tenant="services",device="rxe0",program="held-frozen.service"} 1'
has "doctor names it" "$(rdmaquota doctor)" "problem  process $pid (verbs_objects) in unit held-frozen.service: its mounts make read-only"
advice=$(rdmaquota doctor --pid "$pid" | sed -n 's/^problem  mounts: .*run: //p')
has "with a drop-in" "$advice" "mkdir -p '/etc/systemd/system/held-frozen.service.d'"
: > frozen
eval "$advice"
eventually "the program waits" contains frozen waiting
pid=$(systemctl show --value -p MainPID held-frozen)
is_held frozen services "the unit with this drop-in"
systemctl stop held-frozen

# --- AppArmor, by the rules in docs/hardened.md ---------------------------------------------------------
cp /usr/local/bin/verbs_objects /usr/local/bin/confined
# profile RULE...: in force for that program
profile() {
    printf '%s\n' '#include <tunables/global>' 'profile confined /usr/local/bin/confined {' '#include <abstractions/base>' network, \
        '/dev/infiniband/* rw,' '/sys/** r,' '/etc/libibverbs.d/{,*} r,' '/usr/local/bin/confined mr,' "$@" '}' > profile
    apparmor_parser --replace profile
}
succeeds "a profile without our rules" profile
has "leaves the program unheld" "$(/usr/local/bin/confined rc=4 2>&1)" "rc: 4 of 4"
/usr/local/bin/confined rc=4 wait < /var/lib/forever > confined 2>&1 &
pid=$!
eventually "the confined program waits" contains confined waiting
has "which doctor says" "$(rdmaquota doctor --pid "$pid")" "it runs as confined (enforce)"
kill "$pid"
wait "$pid" 2> /dev/null
mapfile -t rules < <(sed -n '/^    # AppArmor/,/^$/p' "$here/../../docs/hardened.md")
succeeds "with the rules of docs/hardened.md" profile "${rules[@]}"
has "it is held" "$(/usr/local/bin/confined rc=4 2>&1)" "rc: 2 of 4, then EDQUOT"
has "also without /run" "$(bwrap --ro-bind / / --tmpfs /run --dev-bind /dev /dev --proc /proc /usr/local/bin/confined rc=4 2>&1)" \
    "rc: 2 of 4, then EDQUOT"

unit closed-1 DynamicUser=yes
has "a unit with DynamicUser in a tenant without members is not held" "$(cat closed-1)" "rc: 4 of 4"
has "and says so" "$(cat closed-1)" "only members of its tenant and root may use it"
has "doctor says what is missing" "$(rdmaquota doctor --pid "$pid")" "is not a member of its tenant closed"
systemctl stop closed-1

# --- the second place ---------------------------------------------------------------------------------
umount -l $second
succeeds "unmounting it leaves the ledgers where they are" mountpoint -q /run/rdmaquota/tenants/default/here/ledgers
has "doctor misses it" "$(rdmaquota doctor)" "warning  hardened units: $second is not the quota directory"
unit held-without ProtectSystem=strict
has "without it a unit with ProtectSystem=strict is not held" "$(cat held-without)" "rc: 4 of 4"
has "which doctor says" "$(rdmaquota doctor --pid "$pid")" "BindPaths=-/run/rdmaquota"
systemctl stop held-without
succeeds "the sidecar's unit mounts it again, with what that may do" systemctl reload rdmaquotad
held again ProtectSystem=strict
umount -ql /run/rdmaquota/tenants/*/here/ledgers /run/rdmaquota
rm -r /run/rdmaquota
succeeds "a quota directory that was removed is made anew" systemctl restart rdmaquota
is "at both places" "$(stat -c %d:%i /run/rdmaquota)" "$(stat -c %d:%i $second)"
held anew ProtectSystem=strict

# --- devices that come and go ---------------------------------------------------------------------------
rdma link delete rxe0
rmmod rdma_ucm
is "the kernel's devices go" "$(ls /dev/infiniband)" rdmaquota
succeeds "and the second place stays" mountpoint -q $second
umount -l $second
succeeds "as nothing else does" rmdir $second /dev/infiniband
(umask 077 && rdmaquota reload > /dev/null 2>&1)
is "before there are any, reload makes the directory for all users" "$(stat -c %a /dev/infiniband)" 755
modprobe rdma_ucm
rdma link add rxe0 type rxe netdev dummy0
eventually "the device is there" test -c /dev/infiniband/uverbs0
held late ProtectSystem=strict
finish
