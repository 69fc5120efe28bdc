#!/bin/bash
# tenants_test.sh BUILD: who is in which tenant, with and without the sidecar; that tenants do not harm each other; that
# hundreds of them are no burden. Runs as root in the guest.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh"
# shellcheck source=test/integration/sidecar.sh
. "$here/sidecar.sh"
objects=$programs/verbs_objects
chmod 755 "$work"
for group in red blue many; do groupadd $group; done
for user in alice bob carol; do useradd --no-create-home $user; done
usermod -a -G red bob
usermod -a -G many carol
mkdir -p /sys/fs/cgroup/jobs/one/step_0 /sys/fs/cgroup/jobs/two

# As programs, since each may start another: as_user USER COMMAND..., in_job CGROUP COMMAND..., box COMMAND...: in a
# container, that has its own cgroup namespace and its tenant's directory mounted.
mkdir bin
cat > bin/as_user << 'END'
#!/bin/sh
user=$1
shift
exec setpriv --reuid="$user" --regid="$(id -g "$user")" --init-groups "$@"
END
cat > bin/in_job << 'END'
#!/bin/sh
echo $$ > "/sys/fs/cgroup$1/cgroup.procs"
shift
exec "$@"
END
cat > bin/box << 'END'
#!/bin/sh
exec unshare --mount --cgroup sh -c 'mount --rbind /run/rdmaquota/tenants/boxes/here /run/rdmaquota && exec "$@"' sh "$@"
END
chmod 755 bin bin/*
PATH=$work/bin:$PATH
# tenants_of PID: those in which the process has a slot, by name
tenants_of() {
    rdmaquota show --json | /usr/bin/python3 -c '
import json, sys
print(" ".join(t["name"] for t in json.load(sys.stdin)["tenants"] if any(p["pid"] == int(sys.argv[1]) for p in t["processes"])))' "$1"
}
which_of() { rdmaquota which --pid "$1" | sed -n 's/^tenant \([^:]*\):.*/\1/p'; }

# lands NAME TENANT COMMAND...: a program that the command starts is in the tenant that `which` says, and held to its limit
lands() {
    local name=$1 tenant=$2
    start "${@:3}" "$objects" rc=9 wait
    is "$name is in tenant $tenant" "$(tenants_of "$program")" "$tenant"
    is "as which says" "$(which_of "$program")" "$tenant"
    has "and is held to its limit" "$(cat running)" "rc: ${limits[$tenant]} of 9, then EDQUOT"
    has "of which the denial names the tenant" "$(cat running)" "tenant $tenant uses ${limits[$tenant]} of ${limits[$tenant]}"
    proceed
}

declare -A limits=([default]=8 [alice]=1 [red]=2 [job/one]=3 [two/two]=4 [unit]=5 [user/carol]=6)
cat > tenants.toml << 'END'
version = 1
[tenant.default."*"]
qp = 8
[tenant.alice]
match = [{ user = "alice" }]
[tenant.alice."*"]
qp = 1
[tenant."job/one"]
match = [{ cgroup = "/jobs/one", members = ["*"] }]
[tenant."job/one"."*"]
qp = 3
[tenant."two/{job}"]
match = [{ cgroup = "/jobs/{job}", members = ["*"] }]
[tenant."two/{job}"."*"]
qp = 4
[tenant.red]
match = [{ group = "red" }]
[tenant.red."*"]
qp = 2
[tenant."user/{user}"]
match = [{ group = "many" }]
[tenant."user/{user}"."*"]
qp = 6
[tenant.boxes."*"]
qp = 7
END
rdmaquota reload tenants.toml > /dev/null 2>&1

everyone_lands() {
    lands "a user" alice as_user alice
    lands "a member of a group" red as_user bob
    lands "a process in a cgroup" job/one in_job /jobs/one
    lands "and in one below it, whoever it is" job/one in_job /jobs/one/step_0 as_user nobody
    lands "a user of a template" user/carol as_user carol
    lands "root" default
    is "check --as says the same of a user" "$(rdmaquota check tenants.toml --as alice)" \
        "user alice: tenant alice, match 1 of tenant alice, user alice"
    install -o alice -m 4755 "$objects" setuid_objects
    objects=$work/setuid_objects lands "a setuid program" alice as_user nobody
}
everyone_lands

# --- without a daemon nobody makes the tenants of jobs ------------------------------------------------
start in_job /jobs/two "$objects" rc=9 wait
is "a job without a tenant is in default" "$(tenants_of $program)" "default"
has "and is told why" "$(cat running)" "tenant two/two has not been made yet"
proceed

# --- one process in several tenants -----------------------------------------------------------------
start in_job /jobs/one "$objects" rc=2 wait ctx=1 wait
pid=$program
is "before a move" "$(tenants_of $pid)" "job/one"
echo $pid > /sys/fs/cgroup/cgroup.procs
echo >&9
until_waiting 2
is "after it a new device is the other tenant's, the old one's objects stay" "$(tenants_of $pid)" "default job/one"
is "which says where it would be charged now" "$(which_of $pid)" default
used() { rdmaquota show "$1" --json | /usr/bin/python3 -c '
import json, sys
print(json.load(sys.stdin)["tenants"][0]["devices"].get("rxe0", {}).get(sys.argv[1], {}).get("usage", 0))' "$2"; }
is "the queues" "$(used job/one qp) $(used default qp)" "2 0"
is "the devices" "$(used job/one hca_handle) $(used default hca_handle)" "1 1"
exec 9>&-
wait $program

# --- a container: its own cgroup namespace, and its tenant's directory mounted -------------------------
limits[boxes]=7
lands "a container with a tenant's directory" boxes box
lands "and its users" boxes box as_user nobody
run as_user nobody ls /run/rdmaquota/tenants/boxes
has "nobody else can enter that directory" "$log" "Permission denied"

# --- a process whose /proc is hidden ---------------------------------------------------------------
# shellcheck disable=SC2016
start in_job /jobs/one unshare --mount sh -c 'mount -t tmpfs none /proc && exec "$@"' sh "$objects" rc=9 wait
is "without /proc no cgroup matches" "$(tenants_of $program)" default
proceed

# --- with the sidecar -------------------------------------------------------------------------------
start_sidecar
everyone_lands
lands "a job, whose tenant is made on request" two/two in_job /jobs/two

# Directory services can be late at boot.
{ cat tenants.toml; printf '%s\n' '[tenant.dora]' 'match = [{ user = "dora" }]' '[tenant.dora."*"]' 'qp = 4'; } > late.toml
rdmaquota reload late.toml > /dev/null 2>&1 || not_ok "reload" "$(rdmaquota reload late.toml 2>&1)"
: > sidecar.log
useradd --no-create-home dora
await 'dora is known now'
limits[dora]=4
lands "a user who came after the policy" dora as_user dora
rdmaquota reload tenants.toml > /dev/null 2>&1
stop_sidecar

# --- transient tenants ---------------------------------------------------------------------------
limits[slurm/job-1]=2
run rdmaquota tenant add slurm/job-1 --cgroup /jobs/two --user alice --limit qp=2
is "a transient tenant is added" "$status" 0
lands "and comes first" slurm/job-1 in_job /jobs/two as_user alice
run as_user alice rdmaquota tenant add x
is "only root adds any" "$status" 1
run rdmaquota tenant add alice
has "none replaces one of the policy" "$log" "there is a tenant 'alice' already, from the policy file"
run rdmaquota tenant add a+b
is "a wrong name is wrong usage" "$status" 2
run rdmaquota tenant add job-2 --user noone
has "a user must be known" "$log" "there is no user 'noone'"
start in_job /jobs/two as_user alice "$objects" rc=1 wait
run rdmaquota tenant remove slurm/job-1
has "it can be removed in use" "$out" "processes still use it"
has "and is listed as ended" "$(rdmaquota tenant list)" "ended, in use"
rdmaquota tenant add slurm/job-1 --cgroup /jobs/two --user alice --limit qp=2 > /dev/null
run in_job /jobs/two as_user alice "$objects" rc=9
is "the name is free again, and begins anew" "$out" "rc: 2 of 9, then EDQUOT"
proceed
rdmaquota tenant remove slurm/job-1 > /dev/null
run rdmaquota tenant list
lacks "what has ended is gone" "$out" "slurm"

# --- what root in a container does to its tenant's files ------------------------------------------------
rdmaquota tenant add job-3 --user alice --limit qp=2 > /dev/null
books=/run/rdmaquota/tenants/job-3/here/ledgers
ln -s /etc "$books/link"
run cat "$books/link/passwd"
has "a link among them leads nobody elsewhere" "$log" "Too many levels of symbolic links"
chmod 600 "$books"/5/ledger
rm "$books"/5/owners/00
run rdmaquota reload tenants.toml
is "a reload replaces what is missing" "$status, $(find "$books/5/owners" | wc -l)" "0, 65"
head -c 8192 /dev/urandom > "$books/5/ledger"
rdmaquota tenant remove job-3 > /dev/null
run rdmaquota tenant list
lacks "a tenant whose ledger cannot be read can be removed" "$out" job-3
is "with all of its files" "$(find /run/rdmaquota/tenants -name 'job-3*')" ""

# --- a hostile member -------------------------------------------------------------------------------
start as_user bob "$objects" rc=1 wait rc=1 drop=rc rc=2
bob=$program
cat > hostile.py << 'END'
import fcntl, glob, os, random, struct, sys, time
random.seed(1)
end = time.time() + float(sys.argv[1])
files = [path for path in glob.glob("/run/rdmaquota/**", recursive=True) if os.path.isfile(path) and os.access(path, os.W_OK)]
print(*sorted({path.split("/")[4] for path in files}), flush=True)
while time.time() < end:
    path = random.choice(files + [f for f in files if f.endswith("/ledger")] * 50)
    with open(path, "r+b") as file:
        what = random.randrange(4)
        try:
            if what == 0: file.truncate(random.choice([0, 4096, 1 << 40]))
            if what == 1: file.seek(random.randrange(1 << 26)); file.write(os.urandom(1 << 16))
            if what == 2: file.seek(random.randrange(1 << 34)); file.write(b"x" * (64 << 20))
            if what == 3: fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError: pass
END
room() { df --output=avail "$1" | tail -n 1; }
free_before=$(room /run) ledgers_before=$(room /run/rdmaquota)
run as_user alice /usr/bin/python3 hostile.py 20
is "a user can write the own ledger, its locks and those of everyone" "$out" "alice default job+one two+two"
proceed
is "what a member does to a ledger harms no other tenant" "$(grep rc running)" "rc: 1 of 1
rc: 1 of 1
drop rc: 2
rc: 2 of 2"
free_after=$(room /run) ledgers_after=$(room /run/rdmaquota)
if [ $((free_before - free_after)) -lt 20000 ]; then ok "and /run has room"; else not_ok "and /run has room" "$free_before, then $free_after KiB"; fi
if [ $((ledgers_before - ledgers_after)) -lt 20000 ]; then ok "and so has the quota directory"; else not_ok "and so has the quota directory" "$ledgers_before, then $ledgers_after KiB"; fi
rdmaquota reload tenants.toml > /dev/null 2>&1
lands "a reload mends it" alice as_user alice

# Somebody keeps the old ledger's file open after it was replaced, and fills the file system through it.
cat > keeper.py << 'END'
import os, sys
path = sys.argv[1]
ledger = os.open(path, os.O_RDWR)
os.ftruncate(ledger, 0)
print("ready", flush=True)
sys.stdin.readline()
try:
    while True: os.write(ledger, bytes(1 << 20))
except OSError as error:
    print(error.strerror, flush=True)
sys.stdin.readline()
END
start as_user alice /usr/bin/python3 keeper.py /run/rdmaquota/tenants/alice/here/ledgers/5/ledger
rdmaquota repair alice > /dev/null
echo >&9
eventually "the file system is full" contains running "No space left"
has "where a member keeps its file system full, repair mounts another" "$(rdmaquota repair alice)" "there is another, with a new ledger"
rdmaquota reload tenants.toml > /dev/null 2>&1
lands "which reload gives to its members" alice as_user alice

# --- 500 users ------------------------------------------------------------------------------------
cut -d: -f1 /etc/passwd > before
for number in $(seq 500); do echo "u$number:x:$((20000 + number)):20000::/:/bin/sh"; done >> /etc/passwd
echo 'crowd:x:20000:' >> /etc/group
sed -i 's/{ group = "many" }/{ group = "many" }, { group = "crowd" }/' tenants.toml
begin=${EPOCHREALTIME/./}
rdmaquota reload tenants.toml > /dev/null 2>&1
echo "# 500 tenants were made in $(((${EPOCHREALTIME/./} - begin) / 1000)) ms"
is "each user of a group has a tenant" "$(find /run/rdmaquota/tenants -maxdepth 1 -name 'user+#20*' | wc -l)" 500
limits[user/u77]=6
lands "one of 500" user/u77 as_user u77
begin=${EPOCHREALTIME/./}
rdmaquota show > /dev/null
echo "# show took $(((${EPOCHREALTIME/./} - begin) / 1000)) ms"
run as_user u77 rdmaquota show --json
has "a user sees the own tenant" "$out" '"name":"user/u77"'
lacks "and none of others" "$out" '"name":"user/u78"'
sed -i 's/, { group = "crowd" }//' tenants.toml
rdmaquota reload tenants.toml > /dev/null 2>&1
finish
