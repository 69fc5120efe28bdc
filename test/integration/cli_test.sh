#!/bin/bash
# The command line as users and scripts meet it. Needs no RDMA: test/integration/ledger_user plays
# the part of a program with verbs objects.
#
#   cli_test.sh BUILD_DIRECTORY
# Programs on command lines are to be expanded by the shells they are given to.
# shellcheck disable=SC2016,SC2154
set -u

if [[ $# -ne 1 || ! -x $1/tools/rdmaquota/rdmaquota ]]; then
    echo "usage: cli_test.sh BUILD_DIRECTORY" >&2
    exit 2
fi

build=$(realpath "$1")
here=$(dirname "$(realpath "$0")")
rdmaquota=$build/tools/rdmaquota/rdmaquota
ledger_user=$build/test/integration/ledger_user
default_policy=$here/../../rdma-core.d/rdmaquota.toml
# shellcheck source=test/processes.sh
. "$here/../processes.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

# What the person who runs this has set must not matter.
unset RDMAV_DRIVERS IBV_DRIVERS NO_COLOR
export XDG_RUNTIME_DIR=$work/runtime RDMAQUOTA_DIR=$work/quota TZ=UTC LC_ALL=C.UTF-8
mkdir -m 700 "$XDG_RUNTIME_DIR"
ledger=quota/tenants/default/here/ledgers/5

passed=0
failed=0

pass() {
    passed=$((passed + 1))
    echo "ok - $1"
}

fail() {
    failed=$((failed + 1))
    echo "not ok - $1"
    printf '#   status %s\n' "$status"
    sed 's/^/#   stdout: /' out
    sed 's/^/#   stderr: /' err
}

# Runs a command; its results are in $status and the files out and err.
try() {
    "$@" >out 2>err </dev/null
    status=$?
}

# check NAME CONDITION...: the condition is a command that must succeed.
check() {
    local name=$1
    shift
    if "$@" >/dev/null 2>&1; then pass "$name"; else fail "$name"; fi
}

says() { [[ $status -eq 0 && ! -s err ]] && grep -qF -- "$1" out; }

prints() { [[ $status -eq 0 && $(cat out) == "$1" ]]; }

# One line on standard error, nothing on standard output.
refuses() {
    [[ $status -eq $1 && ! -s out && $(wc -l <err) -eq 1 ]] && grep -q '^rdmaquota: ' err && grep -qF -- "$2" err
}

json() { python3 -c "import json,sys; d=json.load(open('out')); sys.exit(not ($1))"; }

no_run_is_left() { [[ -z $(ls -A "$XDG_RUNTIME_DIR") ]]; }

cat >policy.toml <<'END'
version = 1 # the first
[process."*"]
qp = 100      # each process
mr_bytes = "10GiB"
[tenant.default."*"]
qp = 1000
[tenant.default.total]
qp = 1500
END

# --- help, version, wrong usage -------------------------------------------------------------------

try "$rdmaquota" --version
check "--version" grep -Eq '^rdmaquota [0-9]+\.[0-9]+\.[0-9]+$' out

for command in init suggest run show top set unset which explain tenant slurm cdi events check reload repair guard web doctor adopt completion; do
    try "$rdmaquota" $command --help
    check "$command --help" says "Usage: rdmaquota $command"
done

try "$rdmaquota"
check "no command" refuses 2 "no command is given"
try "$rdmaquota" shwo
check "misspelt command" refuses 2 "did you mean 'show'?"
try "$rdmaquota" --dir /nowhere shwo
check "misspelt command after an option's value" refuses 2 "unknown command 'shwo'"
try "$rdmaquota" show --jsn
check "unknown option" refuses 2 "unknown option '--jsn'; see"
try "$rdmaquota" check a b
check "a word too many" refuses 2 "unexpected word 'b'"
try "$rdmaquota" check
check "a word too few" refuses 2 "FILE is missing"
try "$rdmaquota" help
check "help" says "Usage: rdmaquota"
try "$rdmaquota" help events
check "help of a command" says "Usage: rdmaquota events"
try "$rdmaquota" help evnts
check "help of no command" refuses 2 "did you mean 'events'?"
try "$rdmaquota" set rxe0
check "set without a limit" refuses 2 "no limit is given"
try "$rdmaquota" set qp=1
check "set without a device" refuses 2 "no device is given"
try "$rdmaquota" set rxe0 qps=1
check "set of an unknown resource" refuses 2 "unknown resource 'qps'"
try "$rdmaquota" set rxe0 qp=-1
check "set of a negative limit" refuses 2 "'-1'"
try "$rdmaquota" set rxe0 qp=120%
check "set of too high a percentage" refuses 2 "'120%' is not a percentage for qp"
try "$rdmaquota" set rxe0 flow=1%
check "set of a percentage of what no device reports" refuses 2 "limit one of qp, mr, mr_bytes, cq"
try "$rdmaquota" set rxe0 all=10
check "set of an amount for all resources" refuses 2 "write a percentage, such as all=25%"
try "$rdmaquota" set 'rxe 0' qp=1
check "set of an impossible device" refuses 2 "no device name"
try "$rdmaquota" completion tcsh
check "completion of an unknown shell" refuses 2 "bash, zsh, fish"

# --- nothing there yet ----------------------------------------------------------------------------

try "$rdmaquota" show
check "show without a policy" refuses 1 "rdmaquota reload"
try "$rdmaquota" events
check "events without a ledger" refuses 1 "rdmaquota reload"
try "$rdmaquota" set rxe0 qp=1
check "set without a policy" refuses 1 "rdmaquota reload"
try "$rdmaquota" reload nowhere.toml
check "reload of a missing file says how to get one" refuses 1 "copy "

# --- check ----------------------------------------------------------------------------------------

try "$rdmaquota" check policy.toml
check "check" says "policy.toml: ok"
check "check tells what the policy means" says "qp 100, mr_bytes 10 GiB"
try "$rdmaquota" check "$default_policy"
check "the default policy is right" says "ok"
check "the default policy limits nothing" says "no limits"

printf 'version = 1\n[process."*"]\nall = "12.5%%"\nqp = 5\n' >percent.toml
try "$rdmaquota" check percent.toml
check "check tells what limits in percent mean" says "qp 5, mr 12.5%, mr_bytes 12.5%, cq 12.5%"
printf 'version = 1\n[process."*"]\nwq = "25%%"\n' >broken.toml
try "$rdmaquota" check broken.toml
check "check of a percentage that is not possible" refuses 1 "broken.toml:3:6: wq cannot be limited in percent, since no device reports"
printf 'version = 1\n[process."*"]\nqps = 1\n' >broken.toml
try "$rdmaquota" check broken.toml
check "check of a broken policy names the place" refuses 1 "broken.toml:3:1: unknown resource 'qps'"
{ printf '\377' && head -c 4096 /dev/urandom; } >binary.toml
try "$rdmaquota" check binary.toml
check "check of a binary" refuses 1 "binary.toml:1:"
try "$rdmaquota" check .
check "check of a directory" refuses 1 "directory"
{ echo 'version = 1' && for i in {1..67}; do printf '[process.dev%d]\nqp = 1\n' "$i"; done; } >devices.toml
try "$rdmaquota" check devices.toml
check "check of too many devices" refuses 1 "at most 66"

printf '%s\n' 'version = 1' '[[dynamic]]' 'watch = "mr_bytes"' 'of = "node"' 'scope = "process"' 'limit = "qp"' \
    'floor = 4' >rules.toml
printf 'version = 1\n[tenant.a]\ndeny_errno = "EAGAIN"\n' > again.toml
try "$rdmaquota" check again.toml
check "check remarks on EAGAIN" grep -q 'registrations of memory are denied with EDQUOT' err
try "$rdmaquota" check rules.toml
check "check tells what a rule means" says "rule 1 for each process  each device  qp 50 % of it \
while mr_bytes is above 90 % of the node's memory, and until 70 %, but at least 4"

printf '%s\n' 'version = 1' '[slurm.job."*"]' 'qp = 200' '[slurm.qos.high.mlx5_0]' 'qp = 1000' '[tenant.a]' 'weight = 7' \
    '[sidecar]' 'web_port = 9838' >slurm.toml
try "$rdmaquota" check slurm.toml
check "check tells what Slurm's jobs get" says "each Slurm job  each device  qp 200"
check "by QOS, too" says "Slurm QOS high  mlx5_0       qp 1000"
check "what a tenant weighs" says "weight 7"
check "and where the page is" says "http://127.0.0.1:9838/, token"

printf 'version = 1\n[tenant.default]\nbackstop = "/slurm"\n' >backstop.toml
try "$rdmaquota" check backstop.toml
check "and which cgroup the backstop bounds" grep -qF "rdma.max of the cgroup /slurm" out
check "and warns that there is none" grep -q "warning: backstop names the cgroup /slurm, which does not exist on this node" err
try "$rdmaquota" --dir backstop reload backstop.toml
check "which reload does not take" refuses 1 "backstop.toml: backstop names the cgroup /slurm, which does not exist; make it first"
check "and puts nothing in force" test ! -e backstop/policy-5
try "$rdmaquota" --dir backstop reload --boot backstop.toml
check "but at boot" grep -q "backstop.toml is in force" out
check "with a warning" grep -q "warning: backstop names the cgroup /slurm, which does not exist yet" err
printf 'version = 1\n[tenant.blue."*"]\nqp = 5\n[tenant.blue.rxe0]\nqp = { guarantee = 7 }\n' >guarantee.toml
try "$rdmaquota" check guarantee.toml
check "check warns of a guarantee above the limit" \
    grep -q "warning: .*tenant 'blue' is guaranteed 7 qp on rxe0, more than its limit of 5" err
check "and says what is guaranteed" grep -q "tenant blue *rxe0 *guaranteed qp 7" out
touch log && chmod 644 log
printf 'version = 1\n[log]\ntarget = "file"\nfile = "%s"\n' "$work/log" >log.toml
try "$rdmaquota" check log.toml
check "check warns of a log file that users cannot append to" grep -q "warning: ordinary users cannot append to the log file" err
try "$rdmaquota" --dir backstop reload log.toml
check "and so does reload" grep -q "warning: ordinary users cannot append to the log file" err
chmod 666 log
try "$rdmaquota" check log.toml
check "but not of others" says "log.toml: ok"

# --- reload ---------------------------------------------------------------------------------------

try "$rdmaquota" reload policy.toml
check "reload" says "policy.toml is in force, mode enforce"
check "reload makes a directory for everyone" test "$(stat -c %a quota)" = 755
check "reload makes a policy that others can only read" test "$(stat -c %a quota/policy-5)" = 644
try "$rdmaquota" reload broken.toml
check "reload of a broken policy is refused" refuses 1 "broken.toml:3:1:"
try "$rdmaquota" reload devices.toml
check "reload of too many devices is refused" refuses 1 "at most 66"
try "$rdmaquota" show
check "and leaves the running policy as it was" says "total   qp            0   1500     -"
try "$rdmaquota" reload --dir other policy.toml
check "--dir names another directory" test -f other/policy-5

# --- show and events ------------------------------------------------------------------------------

coproc USER_PROGRAM { exec "$ledger_user" rxe0 qp=80 mr_bytes=4GiB cq=3; }
user_pid=$USER_PROGRAM_PID
read -r ready <&"${USER_PROGRAM[0]}"
check "a program is under quota" test "$ready" = ready

try "$rdmaquota" show
check "show lists usage, limit and peak" says "rxe0    qp           80   1000     80"
check "show gives bytes with units" says "rxe0    mr_bytes  4 GiB    max  4 GiB"
check "show gives sums that are limited" says "total   qp           80   1500      -"
check "show lists the process" \
    grep -Eq "^ *$user_pid +root +ledger_user +rxe0 +qp 80 of 100, mr_bytes 4 GiB of 10 GiB, cq 3$" out
check "show is plain when piped" bash -c "! grep -q '[^ -~]' out"

try "$rdmaquota" show --json
check "show --json is one line" test "$(wc -l <out)" -eq 1
check "show --json names version, tenant and mode" \
    json "d['version']==1 and [(t['name'],t['mode']) for t in d['tenants']]==[('default','enforce')]"
check "show --json has usage, limit, peak" \
    json "d['tenants'][0]['devices']['rxe0']['qp']=={'usage':80,'limit':1000,'peak':80,'configured':1000,'guarantee':0,'soft':None,'room':920,'reason':None}"
check "show --json has null for no limit" json "d['tenants'][0]['devices']['rxe0']['cq']['limit'] is None"
check "show --json has sums" json "d['tenants'][0]['devices']['total']['qp']=={'usage':80,'limit':1500,'peak':None,'configured':1500,'guarantee':0,'soft':None,'room':1420,'reason':None}"
check "show --json leaves out what nobody uses or limits" json "'srq' not in d['tenants'][0]['devices']['rxe0']"
check "show --json has processes" \
    json "[(p['pid'],p['comm'],p['devices']['rxe0']['qp']) for p in d['tenants'][0]['processes']] \
==[($user_pid,'ledger_user',{'usage':80,'limit':100})]"

try "$rdmaquota" show --summary
check "show --summary is a line per tenant" says "default      8  80   3   0     4 GiB      1  80 of 1000 qp on rxe0"
try "$rdmaquota" show --summary --resource qp --json
check "show --summary --json" json "[(t['name'],t['usage'],t['fullest']) for t in d['tenants']] \
==[('default',{'qp':80},{'device':'rxe0','resource':'qp','usage':80,'limit':1000})]"
try "$rdmaquota" show --device rxe1
check "show of a device that nobody uses" test "$status" = 0 -a ! -s out
try "$rdmaquota" show --user root --resource cq
check "show of a user and a resource" says "rxe0    cq            3    max     3"
check "and of nothing else" bash -c "! grep -q 'qp' out"
for wrong in "--sort fullest" "--resource qps" "--user nobody_knows" "--history --summary" "--limits --device rxe0"; do
    # shellcheck disable=SC2086
    try "$rdmaquota" show $wrong
    check "show $wrong" refuses 2 ""
done
try script -qec "stty rows 9 cols 100; '$rdmaquota' show" /dev/null
check "show on a terminal that is too small for all is a summary" says "default      8  80   3   0     4 GiB      1  80 of 1000 qp on rxe0"
check "with what was denied" says "default: qp on rxe0, 1 time"
check "and how to see more" says "'show --summary' lists all"
try script -qec "stty rows 60 cols 100; '$rdmaquota' show" /dev/null
check "else it is all" says "tenant default"
try "$rdmaquota" show default
check "show of the default tenant" says "tenant default"
try "$rdmaquota" show blue
check "show of another tenant" refuses 1 "no tenant 'blue'"

try "$rdmaquota" events
check "events" grep -Eq "^20[0-9-]{8} [0-9:]{8}\.[0-9]{3} denied      default      root     rxe0 qp  80 of 80 used, 1 more \
asked \(tenant limit\)  pid $user_pid ledger_user  EDQUOT$" out
try "$rdmaquota" events --json
check "events --json" json \
    "[d[k] for k in 'kind device resource scope used limit requested pid error'.split()] \
==['denied','rxe0','qp','tenant',80,80,1,$user_pid,'EDQUOT']"
check "with tenant, user and count" json "[d[k] for k in 'tenant user uid count reason'.split()]==['default','root',0,1,None] and d['first_time']==d['time']"
for filter in --since=1h --since=00:00 --kind=denied,reaped --tenant=default --user=root --device=rxe0 "--kind reaped --kind denied"; do
    # shellcheck disable=SC2086
    try "$rdmaquota" events $filter
    check "events $filter" says "80 of 80 used"
done
sleep 1  # since 0 s is since the second that it is now
for filter in --since=0s --since=2099-01-31 --kind=reaped --tenant=blue --user=daemon --device=rxe; do
    try "$rdmaquota" events $filter
    check "events $filter has none" prints ""
done
try "$rdmaquota" events --since yesterday
check "events since no time" refuses 2 "'yesterday' is no time"
try "$rdmaquota" events 1h --since
check "an option without its value" refuses 2 "--since needs a value"
try "$rdmaquota" events --kind denid
check "events of no kind" refuses 2 "did you mean 'denied'?"
try "$rdmaquota" __complete events --kind den
check "kinds are completed" prints "denied"

# A program that dies leaves nothing, and says so.
kill -KILL "$user_pid"
wait "$user_pid" 2>/dev/null
try "$rdmaquota" show --json
check "after kill -9 the usage is back at zero" json \
    "d['tenants'][0]['devices']['rxe0']['qp']=={'usage':0,'limit':1000,'peak':80,'configured':1000,'guarantee':0,'soft':None,'room':1000,'reason':None} and not d['tenants'][0]['processes']"
try "$rdmaquota" events --kind reaped
check "a process without objects leaves no event" prints ""
coproc USER_PROGRAM { exec "$ledger_user" rxe0 hca_object=2; }
user_pid=$USER_PROGRAM_PID
read -r ready <&"${USER_PROGRAM[0]}"
kill -KILL "$user_pid"
wait "$user_pid" 2>/dev/null
"$rdmaquota" show >/dev/null
try "$rdmaquota" events
check "one with objects does" says "pid $user_pid ledger_user ended without closing; 2 objects uncharged"

# --- explain --------------------------------------------------------------------------------------

"$rdmaquota" set rxe0 qp=6 > /dev/null
"$ledger_user" rxe0 qp=6 repeats=3 </dev/null >/dev/null &
user_pid=$!
wait $user_pid
try "$rdmaquota" explain --pid $user_pid
check "explain tells of a process that has ended" grep -qF "quota: " out
check "by its events" grep -qF "qp on rxe0: tenant default used 6 of 6, 1 more asked by pid $user_pid (ledger_user), 3 times" out
check "and what helps" grep -qF "  to allow it: rdmaquota --dir $work/quota unset rxe0 qp" out
check "and that it has ended" grep -q "has ended" err
try "$rdmaquota" explain
check "without a process, of the last denial" grep -qF "by pid $user_pid (ledger_user)" out
try "$rdmaquota" explain --json
check "explain --json" json "d['version']==1 and d['causes'][0]['kind']=='quota' and 'unset rxe0 qp' in d['causes'][0]['helps']"
"$rdmaquota" set rxe0 qp=1000 > /dev/null
try "$rdmaquota" explain --pid $user_pid
check "a limit that was raised meanwhile is no advice" grep -qxF "  the limit is 1000 by now" out
try "$rdmaquota" explain -- sh -c '"$1" rxe4 pd=2 </dev/null; echo ended' - "$ledger_user"
check "explain runs a program and says what it was denied" grep -qF "pd on rxe4: tenant default used 2 of 2, 1 more asked by pid" out
check "after the program's own output" grep -qx ended out
check "and of nothing before" bash -c '! grep -q "qp on rxe0" out'
try "$rdmaquota" explain -- true
if [[ -e /sys/class/infiniband ]]; then
    echo "# skipped: a node without RDMA, since this one has it"
else
    check "explain says that there is no device" grep -q "^no device: this node has no RDMA device" out
fi
try bash -c 'ulimit -l 64; exec setpriv --bounding-set -ipc_lock --inh-caps -ipc_lock "$0" explain -- true' "$rdmaquota"
check "explain names RLIMIT_MEMLOCK" grep -qF "memory lock: RLIMIT_MEMLOCK lets it pin 64 KiB, of which 0 are pinned" out
try "$rdmaquota" explain -- ./not-there
check "explain of no program" refuses 1 "cannot run './not-there'"
try "$rdmaquota" explain --pid 1 -- true
check "explain of both" refuses 2 "exclude each other"

# Names out of the ledger must not steer the terminal.
cp "$ledger_user" "$(printf 'bad\e[31m\nname')"
coproc USER_PROGRAM { exec ./bad* rxe0 qp=1; }
user_pid=$USER_PROGRAM_PID
read -r ready <&"${USER_PROGRAM[0]}"
try "$rdmaquota" show
check "show escapes process names" says 'bad\x1b[31m\x0aname'
try "$rdmaquota" events
check "events escapes process names" says 'bad\x1b[31m\x0aname'
try "$rdmaquota" show --json
check "show --json escapes process names" json "d['tenants'][0]['processes'][0]['comm']=='bad\x1b[31m\nname'"
for command in show "show --limits" events which doctor "doctor --pid $user_pid" "explain --pid $user_pid" \
    top "top --by user" "top --by process" "top --by device"; do
    # shellcheck disable=SC2086
    try python3 "$here/on_terminal.py" "$rdmaquota" $command
    check "no line of $command is wider than 80 columns" test "$status" -ne 99
done
check "top is drawn on a terminal" grep -q "FULL%" out
kill -KILL "$user_pid"
wait "$user_pid" 2>/dev/null

try "$rdmaquota" top
check "top without a terminal says what to use" refuses 1 "rdmaquota show"
try "$rdmaquota" top --batch -n 2 --delay 0.1
check "top --batch writes to a pipe" test "$(grep -c '^TENANT' out)" = 2
check "with a time each" test "$(grep -c 'by tenant  mode enforce' out)" = 2
try "$rdmaquota" top --batch -n 1 --filter nobody
check "top --filter" test "$(grep -c . out)" = 2
try "$rdmaquota" top -n 1
check "a count of looks without --batch" refuses 2 "--count is for --batch"
try "$rdmaquota" top --by colour
check "top by what is no view" refuses 2 "tenant, user, process or device"
try "$rdmaquota" show --history
check "history without the sidecar says who keeps it" refuses 1 "systemctl start rdmaquotad"

# --- a first policy, and later ones -----------------------------------------------------------------

for kind in login ai inference storage slurm kubernetes pods; do
    try "$rdmaquota" check "$here/../../rdma-core.d/recipes/$kind.toml"
    check "the recipe '$kind' is right" grep -q 'mode  *audit' out
    "$rdmaquota" init $kind >init.toml
    try "$rdmaquota" check init.toml
    check "so is what init makes of it" grep -q 'mode  *audit' out
done
try "$rdmaquota" init login
check "init says what was used so far" says "#   default: 80 qp on rxe0"
try "$rdmaquota" init login --output first.toml
check "init writes a file" test -s first.toml
try "$rdmaquota" init login --output first.toml
check "but never over one" refuses 1 "there is already a file first.toml"
try "$rdmaquota" init ai --group physics,chemistry
check "init ai has a tenant for each group" bash -c "grep -q 'tenant.\"chemistry\"' out && ! grep -q vision out"
try "$rdmaquota" init
check "init without a kind and a terminal" refuses 2 "this one looks like"
try "$rdmaquota" init office
check "init of no kind" refuses 2 "choose of login"
try "$rdmaquota" suggest
check "suggest goes by the limits of now" bash -c "! grep -q qp out"
"$rdmaquota" set rxe0 qp=80 > /dev/null
try "$rdmaquota" suggest
check "suggest is a difference" bash -c "grep -qxF '[tenant.\"default\".\"rxe0\"]' out && grep -q '^-qp = 80$' out && grep -q '^+qp = 160 .*# denied [0-9]* times' out"
try "$rdmaquota" suggest --commands
check "or commands" grep -q '^rdmaquota set default rxe0 qp=160 --persist' out
try "$rdmaquota" suggest --json --since 0s
check "or JSON" json "'suggestions' in d"
"$rdmaquota" set rxe0 qp=1000 > /dev/null

# --- events --follow ------------------------------------------------------------------------------

"$rdmaquota" events --follow >followed 2>err </dev/null &
follower=$!
wait_for() {
    local i
    for ((i = 0; i < 3000; i++)); do
        grep -q "$1" followed && return
        sleep 0.1
    done
    return 1
}
check "events --follow starts with what was" wait_for "80 of 80 used"
"$ledger_user" rxe1 qp=7 </dev/null >/dev/null
check "events --follow tells of new events" wait_for "rxe1 qp  7 of 7 used"
mv $ledger $ledger.old && "$rdmaquota" reload policy.toml >/dev/null
"$ledger_user" rxe2 qp=9 </dev/null >/dev/null
check "events --follow survives a new ledger" wait_for "rxe2 qp  9 of 9 used"
"$ledger_user" rxe3 qp=5 repeats=2000 </dev/null >/dev/null
check "a retry loop of 2,000 denials is one event" test "$("$rdmaquota" events --json --device rxe3 --kind denied | wc -l)" -eq 1
try "$rdmaquota" events --json --device rxe3 --kind denied
check "with a count, and the first time and the last" json "d['count']==2000 and d['first_time']<d['time']"
try "$rdmaquota" events --device rxe3
check "which the line says" says "(tenant limit), 2000 times since 20"
check "and which --follow tells of" wait_for "rxe3 qp  5 of 5 used, 1 more asked (tenant limit), 2000 times since"
kill -INT "$follower"
wait "$follower"
status=$?
check "events --follow ends with 0 when interrupted" test "$status" -eq 0

# --- set ------------------------------------------------------------------------------------------

limit_is() { "$rdmaquota" show --json >out && json "d['tenants'][0]['devices']['$1']['$2']['limit']==$3"; }

try "$rdmaquota" set rxe2 qp=4 mr_bytes=1GiB
check "set says what it changed" prints "rxe2 qp: 1000 -> 4 (tenant default)
rxe2 mr_bytes: max -> 1 GiB (tenant default)"
check "set is in force" limit_is rxe2 qp 4
try "$rdmaquota" set default rxe2 cq=10k --process
check "set --process" prints "rxe2 cq: max -> 10000 (each process of tenant default)"
try "$rdmaquota" set rxe2 qp=max
check "set to max" prints "rxe2 qp: 4 -> max (tenant default)"
try "$rdmaquota" set '*' pd=8
check "set for each device" limit_is rxe2 pd 8
try "$rdmaquota" set total qp=20
check "set for the sum" prints "total qp: 1500 -> 20 (tenant default)"
try "$rdmaquota" set rxe2 qp=1 cq=x
check "set of a right and a wrong limit is refused" refuses 2 "'x'"
check "and changes nothing" limit_is rxe2 qp None
try "$rdmaquota" set blue rxe2 qp=1
check "set of another tenant is refused" refuses 1 "no tenant 'blue'"
try "$rdmaquota" show node
check "show of the node without limits" refuses 1 "write [node.\"*\"] into the policy file"
try "$rdmaquota" set rxe9 qp=1
check "set of an unknown device warns" grep -q "warning: no device 'rxe9' is known here, only .*rxe2" err
check "and is done" prints "rxe9 qp: 1000 -> 1 (tenant default)"

try "$rdmaquota" set rxe2 qp=5 --persist
check "set --persist for a directory of its own needs --file" refuses 1 "--file"
cp policy.toml before.toml
try "$rdmaquota" set '*' qp=64 --process --persist --file policy.toml
check "set --persist" says "saved in policy.toml"
check "set --persist changes one line of the file" test "$(diff before.toml policy.toml)" = '3c3
< qp = 100      # each process
---
> qp = 64      # each process'
try "$rdmaquota" set rxe2 cq=7 --persist --file policy.toml
check "set --persist adds a table" test "$(tail -n 3 policy.toml)" = '
[tenant.default."rxe2"]
cq = 7'
mkdir conf.d && printf '[tenant.default.rxe2]\ncq = 9\n' >conf.d/50-more.toml
try "$rdmaquota" set rxe2 cq=8 --persist --file policy.toml
check "set --persist tells what overrides it" refuses 1 "conf.d/50-more.toml:2:6: cq for 'rxe2' is set here"
check "and then changes nothing" limit_is rxe2 cq 7
try "$rdmaquota" check policy.toml
check "check names merged files" says "conf.d/50-more.toml: ok, merged"
rm -r conf.d

# --- run ------------------------------------------------------------------------------------------

try "$rdmaquota" run --limit qp=2 --tenant-limit cq=3,pd=4 --mode audit -- "$rdmaquota" show --json
check "run shows its own limits inside" json "d['tenants'][0]['mode']=='audit'"
check "run leaves no directory behind" no_run_is_left
try "$rdmaquota" run --limit commands_per_s=100 --tenant-limit rxe0:registered_per_s=1GiB -- "$rdmaquota" show --limits
check "run limits rates" grep -Eq "^each process +\* +commands_per_s +100  policy" out
check "of its tenant, too" grep -Eq "rxe0 +registered_per_s +1 GiB  policy" out
try "$rdmaquota" run --limit qp=2 --tenant-limit cq=3 -- "$rdmaquota" show
check "show in a run shows limits that are not used yet" grep -Eq "^each process  .* qp +2  policy" out
try "$rdmaquota" run --limit qp=2 -- sh -c 'test "$(stat -c %a "$RDMAQUOTA_DIR")" = 700 && echo "$RDMAQUOTA_DIR"'
check "run makes a directory that only its user can enter" says "$XDG_RUNTIME_DIR/rdmaquota-run."
try env XDG_RUNTIME_DIR=/nonexistent "$rdmaquota" run -- sh -c 'echo "$RDMAQUOTA_DIR"'
check "run falls back to /tmp" says "/tmp/rdmaquota-run."
try "$rdmaquota" run -- sh -c 'exit 7'
check "run gives the program's status" test "$status" -eq 7
{ try "$rdmaquota" run -- sh -c 'kill -TERM $$'; } 2>/dev/null
check "run ends by the program's signal" test "$status" -eq 143
try "$rdmaquota" run -- ./not-there
check "run of a missing program" refuses 127 "cannot run './not-there'"
try "$rdmaquota" run -- ./policy.toml
check "run of what is no program" refuses 126 "Permission denied"
try "$rdmaquota" run --limit qp=2 -- printf '%s|' '[a,b]' -x -- ''
check "run passes arguments unchanged" prints '[a,b]|-x|--||'
try "$rdmaquota" run printf '%s|' -x
check "run understands a missing --" prints '-x|'
try "$rdmaquota" run --limt qp=2 -- true
check "run with a misspelt option" refuses 2 "--limt"
try "$rdmaquota" run --limit qq=2 -- true
check "run with an unknown resource" refuses 2 "unknown resource 'qq'"
try "$rdmaquota" run --mode loose -- true
check "run with an unknown mode" refuses 2 "enforce, audit, off"
try "$rdmaquota" run --deny-errno EPERM -- true
check "run with an impossible errno" refuses 2 "EDQUOT, EAGAIN, ENOMEM"
try "$rdmaquota" run
check "run without a program" refuses 2 "no program is given"

driver_dir=$(sed -n 's/.*driver_dir = "\(.*\)".*/\1/p' "$build/tools/common/config.hpp")
if [[ -e $driver_dir/rdmaquota.driver ]]; then
    echo "# skipped: RDMAV_DRIVERS, since rdmaquota is installed here"
else
    try "$rdmaquota" run -- sh -c 'echo "$RDMAV_DRIVERS"'
    check "run names the build tree's provider" prints "$build/provider/librdmaquota"
    try env RDMAV_DRIVERS=rxe:siw "$rdmaquota" run -- sh -c 'echo "$RDMAV_DRIVERS"'
    check "run keeps the drivers that were named" prints "$build/provider/librdmaquota:rxe:siw"
fi

started() {
    local i
    for ((i = 0; i < 3000; i++)); do
        [[ -e $1 ]] && return
        sleep 0.05
    done
    return 1
}
for signal in INT TERM HUP; do
    rm -f started
    # A background job of a script ignores SIGINT, and what nohup started SIGHUP; Python gives them back.
    python3 -c "import os, signal, sys
signal.signal(signal.SIG$signal, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])" \
        "$rdmaquota" run -- sh -c "trap 'exit 9' $signal; touch started; while :; do sleep 0.05; done" >out 2>err &
    runner=$!
    started started
    kill -$signal "$runner"
    wait "$runner"
    status=$?
    check "run passes SIG$signal on" test "$status" -eq 9
done
check "run cleans up after signals" no_run_is_left

try "$rdmaquota" run -- sh -c 'sleep 60 >/dev/null 2>&1 & echo left'
check "run does not wait for what goes on in the background" test "$status" -eq 0 -a "$(cat out)" = left
check "and says where its directory is" grep -q "live on under its limits; remove $XDG_RUNTIME_DIR/rdmaquota-run" err
check "and keeps it" bash -c "! [[ -z \$(ls -A '$XDG_RUNTIME_DIR') ]]"
rm -rf "${XDG_RUNTIME_DIR:?}"/*

# --- tenants --------------------------------------------------------------------------------------

cat >tenants.toml <<'END'
version = 1
[process."*"]
qp = 50
[tenant.default."*"]
qp = 100
[tenant.physics."*"]
qp = 4000
[tenant."physics/atlas"]
match = [{ user = "daemon" }, { cgroup = "/slurm/**/job_*", members = ["@daemon"] }]
mode = "audit"
[tenant."physics/atlas"."*"]
qp = 400
[tenant."physics/atlas".process."*"]
qp = 60
[tenant."user/{user}"]
match = [{ group = "root" }]
[tenant."user/{user}"."*"]
qp = 200
[node."*"]
qp = 10000
END
try "$rdmaquota" reload tenants.toml
check "a policy with tenants" grep -qF "tenants.toml is in force" out
check "and what it takes back" grep -q "[0-9] limits that were set without --persist are as in the file again: default " err
echo secret > key && chmod 644 key
printf '%s\n' 'version = 1' '[sidecar]' 'metrics_port = 9837' "metrics_certificate = '$work/key'" "metrics_key = '$work/key'" > key.toml
try "$rdmaquota" check key.toml
check "check fails where reload would, for a secret that others can read" refuses 1 "run: chmod 600 $work/key"
try "$rdmaquota" check tenants.toml --as daemon
check "check --as" prints "user daemon: tenant physics/atlas, match 1 of tenant physics/atlas, user daemon"
try "$rdmaquota" check tenants.toml --as bin --cgroup /slurm/a/job_1/step_0
check "check --cgroup" prints "user bin in cgroup /slurm/a/job_1/step_0: tenant physics/atlas, match 2 of tenant \
physics/atlas, cgroup /slurm/**/job_*"
try "$rdmaquota" check tenants.toml --as bin
check "check of one whom nothing matches" prints "user bin: tenant default, no match holds; an entry before it asks for a cgroup or a unit: add --cgroup PATH"
try "$rdmaquota" check tenants.toml --as noone
check "check of an unknown user" refuses 1 "there is no user 'noone'"
try "$rdmaquota" which
check "which says tenant and rule" says "tenant user/root: match 1 of template user/{user}, group root"
check "and what may still be created" says "*       qp          50      0     50  this process"
try "$rdmaquota" which --json
check "which --json" json "d['tenant']=='user/root' and \
{'device':'*','resource':'qp','scope':'tenant','total':False,'usage':0,'limit':200,'left':200} in d['left'] and \
d['room']==[{'device':'*','resource':'qp','scope':'process','total':False,'usage':0,'limit':50,'room':50}]"
try env RDMAQUOTA_LIMIT=qp=3 "$rdmaquota" which
check "which names the environment" says "variables of the environment"
"$rdmaquota" set user/root '*' commands_per_s=2000 > /dev/null
"$rdmaquota" set user/root '*' commands_per_s=4000 --burst > /dev/null
try "$rdmaquota" which
check "which has rates" grep -Eq "^\* +commands_per_s +2000 +4000  the tenant$" out
check "and how long they delay" says "a call waits for up to 1.0 s (max_delay)"
try "$rdmaquota" which --json
check "which --json has them" json "d['rates']==[{'device':'*','rate':'commands_per_s','scope':'tenant','limit':2000,'burst':4000}] and \
d['max_delay_ms']==1000"
"$rdmaquota" unset user/root '*' commands_per_s > /dev/null
"$rdmaquota" unset user/root '*' commands_per_s --burst > /dev/null
try "$rdmaquota" set user/root rxe7 qp=7
try "$rdmaquota" set user/root total qp=5
try "$rdmaquota" which --json
check "a sum over devices bounds each" json "[(r['limit'],r['total']) for r in d['room']]==[(5,True)]*len(d['room'])"
try "$rdmaquota" unset user/root total qp
try "$rdmaquota" show --limits
check "show --limits has limits that nobody uses" grep -Eq "^the tenant    rxe7    qp +7  set$" out
check "and those of each process" grep -Eq "^each process  \* +qp +50  \[process\]$" out
try "$rdmaquota" show user/root --json
check "show --json has them" json "{'scope':'tenant','device':'rxe7','resource':'qp','limit':7,'configured':200,'soft':None,\
'guarantee':0,'from':'set','reason':None,'why':None} in [dict(l, configured=200) for l in d['tenants'][0]['limits']]"
try "$rdmaquota" unset user/root rxe7 qp
try "$rdmaquota" which --user daemon
check "which --user" says "tenant physics/atlas: match 1 of tenant physics/atlas, user daemon"
try "$rdmaquota" which --user bin
check "which --user of one whom a cgroup may place" says "note: no match by cgroup or unit was tried"
try "$rdmaquota" which --user noone
check "which --user of no user" refuses 1 "there is no user 'noone'"
try "$rdmaquota" which --user bin --pid 1
check "which of a user's process" refuses 2 "exclude each other"
try "$rdmaquota" which --pid 2147483647
check "which of no process" refuses 1 "no process"
try "$rdmaquota" tenant list
check "tenant list names all" test "$(awk 'NR > 1 { print $1 }' out | xargs)" = \
    "default node physics physics/atlas user/root user/{user}"
try "$rdmaquota" set physics/atlas '*' qp=300
check "set of a tenant" prints "* qp: 400 -> 300 (tenant physics/atlas)"
try "$rdmaquota" unset physics/atlas '*' qp
check "unset" prints "* qp: 300 -> 400 (tenant physics/atlas)"
try "$rdmaquota" set 'user/{user}' '*' qp=150
check "set of a template" prints "* qp: 200 -> 150 (tenant user/{user})"
try "$rdmaquota" which --json
check "changes its tenants" json "d['left'][0]['limit']==150"
try "$rdmaquota" set '*' qp=40 --process
check "set --process without a tenant is for each" prints "* qp: 50 -> 40 (each process)"
try "$rdmaquota" which --json
check "and changes every tenant" json "40 in [l['limit'] for l in d['left']]"
try "$rdmaquota" set physics/atlas '*' cq=1 --process
try "$rdmaquota" show physics --json
check "show of an inner tenant shows those below it" json "[t['name'] for t in d['tenants']]==['physics','physics/atlas'] and \
d['tenants'][1]['parent']=='physics' and d['tenants'][1]['mode']=='audit'"
try "$rdmaquota" unset physics/atlas '*' qps
check "unset of no resource" refuses 2 "no resource is given"
try "$rdmaquota" set nobody '*' qp=1
check "set of no tenant" refuses 1 "there is no tenant 'nobody'; there are default"
try "$rdmaquota" tenant add jobs/one --cgroup /jobs/one --user daemon --limit qp=3 --process-limit rxe0:cq=2 --mode audit
check "tenant add" says "tenant jobs/one is there"
chmod 755 "$work"
try bash -c 'ulimit -l 64; exec setpriv --reuid daemon --clear-groups "$0" which' "$rdmaquota"
check "which names RLIMIT_MEMLOCK for whom it bounds" says "it may pin 64 KiB of memory (RLIMIT_MEMLOCK), of which 0 are pinned"
check "its ledger is its member's, who does not own it" test "$(stat -c %U quota/tenants/jobs+one/here/ledgers/5/ledger) \
$(setpriv --reuid daemon --clear-groups test -w quota/tenants/jobs+one/here/ledgers/5/ledger && echo writable)" = "root writable"
try "$rdmaquota" tenant add jobs/two --user daemon --limit commands_per_s=1000
check "a transient tenant has rates" says "tenant jobs/two is there"
try "$rdmaquota" show jobs/two --json
check "which show has" json "('commands_per_s', 1000) in [(l['resource'], l['limit']) for l in d['tenants'][0]['limits']]"
try "$rdmaquota" tenant remove jobs/two
try "$rdmaquota" tenant add jobs/one
check "twice" refuses 1 "there is a tenant 'jobs/one' already"
try "$rdmaquota" tenant add physics/atlas/x
check "below one with processes" refuses 1 "processes are in it"
try "$rdmaquota" tenant add ../x
check "a wrong name" refuses 2 "'../x'"
try "$rdmaquota" reload tenants.toml
try "$rdmaquota" tenant list
check "a reload keeps it" says "jobs/one       audit            0  transient"
try "$rdmaquota" tenant remove physics
check "remove of one of the file" refuses 1 "comes from the policy file"
try "$rdmaquota" tenant remove jobs/one
check "tenant remove" prints "tenant jobs/one is removed"
check "removes its files" test ! -e quota/tenants/jobs+one
try "$rdmaquota" tenant lst
check "tenant by a wrong word" refuses 2 "tenant add NAME"
try "$rdmaquota" tenant bind physics/atlas
check "tenant bind without a state" refuses 1 "no OCI state"
bind() { "$rdmaquota" tenant bind "$1" <<< "$2"; }
bind physics/atlas '{"pid": -1}' > out 2> err; status=$?
check "tenant bind of an impossible pid" refuses 1 "no OCI state"
bind physics/atlas '{"pid": 4194304}' > out 2> err; status=$?
check "tenant bind of a pid that is gone" refuses 1 "cannot be read"
bind physics/atlas "{\"pid\": $$}" > out 2> err; status=$?
check "tenant bind of what has no cgroup of its own" refuses 1 "no cgroup of its own"

# --- slurm ----------------------------------------------------------------------------------------

try "$rdmaquota" slurm begin 7 --user daemon --rdma qp=1
check "slurm begin without [slurm]" test "$status$(cat out)" = 0
check "which says that --rdma has no effect" grep -q 'rdmaquota: --rdma has no effect' err
try "$rdmaquota" slurm limits
check "slurm limits without [slurm]" refuses 1 "has no [slurm]"
{
    cat tenants.toml
    printf '[slurm.job."*"]\nqp = 10\n[slurm.account.atlas."*"]\nmr_bytes = "1GiB"\n'
    printf '[slurm.partition.debug."*"]\nqp = 2\n[slurm.qos.high."*"]\nqp = 100\n'
} > slurm.toml
try "$rdmaquota" reload slurm.toml
try "$rdmaquota" slurm limits --account atlas --partition debug
check "slurm limits" grep -Eq "^[*] +qp +2$" out
check "slurm limits of all that the job is" grep -Eq "^[*] +mr_bytes +1 GiB$" out
try "$rdmaquota" slurm limits --rdma qp=20
check "more than the policy has" grep -q 'qp cannot be 20: the policy of this node gives a job 10' err
try "$rdmaquota" slurm limits --rdma qps=20
check "slurm limits of a wrong resource" refuses 2 "unknown resource 'qps'"

# What Slurm says of a job, where the plugin does not know it.
mkdir slurm_says
printf '#!/bin/sh\necho "$*" >> asked\necho "atlas|high"\n' > slurm_says/squeue
chmod 755 slurm_says/squeue
with_slurm() { PATH=$PWD/slurm_says:$PATH "$rdmaquota" "$@"; }
try with_slurm slurm begin 7 --user daemon --partition debug
check "slurm begin makes a tenant, by what Slurm says of the job" prints "tenant slurm/atlas/job-7"
check "it was asked once" test "$(cat asked)" = "--noheader --jobs=7 --format=%a|%q"
try with_slurm slurm begin 7 --user daemon --account other --qos low
check "a number that is used again" prints "tenant slurm/other/job-7"
check "has one tenant" test "$("$rdmaquota" tenant list | grep -c job-7)" = 1
check "nobody is asked for what is known" test "$(wc -l < asked)" = 1
printf '#!/bin/sh\nexit 1\n' > slurm_says/squeue
try with_slurm slurm begin 8 --user daemon
check "without an answer there is a tenant" prints "tenant slurm/none/job-8"
check "and a remark" grep -q 'Slurm does not tell account and QOS' err
check "which is an event" grep -q 'job .*Slurm does not tell' <("$rdmaquota" events)
try "$rdmaquota" events --json
check "of slurm's" grep -q '"source":"slurm".*"kind":"job","tenant":"slurm/none/job-8"' out
"$rdmaquota" tenant add slurm/none/job-17 > /dev/null
for job in 7 8; do try "$rdmaquota" slurm end $job; done
check "slurm end removes the job's tenant, and no other" test "$("$rdmaquota" tenant list | awk '/slurm/ { print $1 }')" = slurm/none/job-17
"$rdmaquota" tenant remove slurm/none/job-17 > /dev/null
try "$rdmaquota" slurm end 7
check "slurm end of one that is gone" test $status = 0
try "$rdmaquota" slurm begin 0 --user daemon
check "slurm begin of no job" refuses 2 "number of a job"
try "$rdmaquota" slurm begin 7 --user nobody-of-this-name
check "slurm begin for no user" refuses 2 "--user is needed"
echo broken > quota/slurm/policy.toml
try "$rdmaquota" slurm begin 9 --user daemon --account atlas
check "slurm begin with a broken policy" refuses 1 "job 9 has no RDMA quota of its own: $work/quota/slurm/policy.toml:1"
check "which is an event too" grep -q 'job .*job 9 has no RDMA quota' <("$rdmaquota" events)
try "$rdmaquota" reload tenants.toml
check "reload takes [slurm] away" test ! -e quota/slurm/policy.toml
try "$rdmaquota" __complete slurm l
check "slurm's words are completed" prints limits

# --- cdi ------------------------------------------------------------------------------------------

try "$rdmaquota" cdi physics/atlas
check "cdi names kind and device" json "(d['cdiVersion'],d['kind'],d['devices'][0]['name'])==('0.3.0','rdmaquota.io/tenant','physics:atlas')"
edits="d['devices'][0]['containerEdits']"
check "cdi has a link for each private ABI" json "sorted(m['containerPath'] for m in $edits['mounts'] if 'rdmav' in m['containerPath'])\
==['/usr/lib/rdmaquota/librdmaquota-rdmav%d.so'%p for p in (34,57,59,64,65)]"
check "all of which are there" json "all(__import__('os').path.exists(m['hostPath']) for m in $edits['mounts'])"
check "cdi has the file that names them" json "open([m['hostPath'] for m in $edits['mounts'] \
if m['containerPath']=='/etc/libibverbs.d/rdmaquota.driver'][0]).read()=='driver /usr/lib/rdmaquota/librdmaquota\n'"
check "cdi lets a container write its ledgers only" json "[m['containerPath'] for m in $edits['mounts'] if 'ro' not in m['options']]==['/run/rdmaquota/ledgers']"
check "cdi brings no shadow library" json "not [m for m in $edits['mounts'] if 'shadow' in m['hostPath']]"
check "cdi has the hook" json "$edits['hooks']==[{'hookName':'createRuntime','path':'$rdmaquota', \
'args':['rdmaquota','tenant','bind','physics/atlas','--dir','$work/quota'],'timeout':30}]"
cp out specification
try "$rdmaquota" cdi physics/atlas --output blue.json
check "cdi into a file" cmp specification blue.json
try "$rdmaquota" tenant add 7 --limit qp=1
try "$rdmaquota" cdi 7
check "a name that begins with a digit needs a newer version" json "d['cdiVersion']=='0.5.0'"
try "$rdmaquota" tenant remove 7
try "$rdmaquota" tenant add a:b --limit qp=1
try "$rdmaquota" cdi a:b
check "cdi of a tenant whose device would have the name of another's" refuses 1 "'a:b' cannot name a CDI device"
try "$rdmaquota" tenant remove a:b
try "$rdmaquota" cdi physics
check "cdi of an inner tenant" refuses 1 "'physics' has tenants below it"
try "$rdmaquota" cdi 'user/{user}'
check "cdi of a template" refuses 1 "is a template"
try "$rdmaquota" cdi node
check "cdi of the node" refuses 1 "all tenants together"
try "$rdmaquota" cdi nobody
check "cdi of no tenant" refuses 1 "no tenant 'nobody'"
try "$rdmaquota" cdi physics/atlas --output nowhere/blue.json
check "cdi into no directory" refuses 1 "nowhere/blue.json"
try "$rdmaquota" --dir quota/tenants/physics+atlas/here cdi physics/atlas
check "cdi in a tenant's own directory" refuses 1 "belongs to one tenant"
try "$rdmaquota" __complete cdi phy
check "tenants are completed for cdi" prints "physics
physics/atlas"

try "$rdmaquota" --dir quota/tenants/physics+atlas/here show
check "a tenant's own directory" says "tenant physics/atlas"
try "$rdmaquota" --dir quota/tenants/physics+atlas/here which
check "needs no match" says "tenant physics/atlas: the directory is its own"
sed -i '/physics/,$d' tenants.toml
try "$rdmaquota" reload tenants.toml
try "$rdmaquota" tenant list
check "what a policy no longer has goes" test "$(awk 'NR > 1 { print $1 }' out | xargs)" = default

# --- adopt ----------------------------------------------------------------------------------------
try "$rdmaquota" adopt
check "adopt of nothing" refuses 2 "adopt needs a PREFIX, or --scan with directories"
try "$rdmaquota" adopt --remove --scan /opt
check "adopt of two things" refuses 2 "--scan and --remove exclude each other"
try "$rdmaquota" adopt /nowhere
check "adopt of a prefix that does not exist" refuses 1 "/nowhere: No such file or directory"

# --- doctor ---------------------------------------------------------------------------------------

# What it says of a healthy node and of programs with devices is in early_test.sh.
"$rdmaquota" reload "$default_policy" >/dev/null
try "$rdmaquota" doctor
check "doctor looks at policy and ledger" grep -q "^ok       ledger: $RDMAQUOTA_DIR/tenants/default/here/ledgers/5 is usable" out
check "its status is that of its verdict" test "$status" -eq "$(grep -c 'this node has' out)"
try "$rdmaquota" doctor --json
check "doctor --json" json "d['version'] == 1 and d['findings'] and \
(d['verdict'] != 'ok') == any(f['level'] == 'problem' for f in d['findings'])"
rm -r $ledger
try "$rdmaquota" doctor
check "doctor finds a missing ledger" grep -q '^problem  ledger: ' out
check "and fails" test "$status" -eq 1
"$rdmaquota" reload "$default_policy" >/dev/null
try "$rdmaquota" doctor --pid $$
check "doctor of a process without RDMA" says "ok       devices: it has none open"
try "$rdmaquota" doctor --pid 4194304
check "doctor of no process" grep -q '^problem  process: cannot look into process 4194304' out
check "and it fails" test "$status" -eq 1

# It is run by root, of processes that may do what they can against it.
bounded_doctor() { try bash -c 'ulimit -v 400000; exec "$0" doctor --pid "$1"' "$rdmaquota" "$1"; }
cp "$(command -v sleep)" hostile
truncate -s 3G hostile
./hostile 1000 &
hostile=$!
bounded_doctor $hostile
check "doctor of a program of 3 GiB, most of it a hole" says "ok       devices: it has none open"
kill $hostile
truncate -s 1T libmlx5.so.1
python3 -c 'import mmap, sys, time
file = open("libmlx5.so.1", "rb")
maps = [mmap.mmap(file.fileno(), 1 << 40, mmap.MAP_PRIVATE, mmap.PROT_READ | also) for also in (0, mmap.PROT_EXEC)]
print("mapped", flush=True)
time.sleep(1000)' >mapped 2>&1 &
hostile=$!
for _ in {1..3000}; do
    [[ -s mapped ]] && break
    sleep 0.1
done
bounded_doctor $hostile
check "doctor of a process that has mapped 1 TiB" grep -q '^warning  library: .*/libmlx5.so.1 is loaded and not adopted' out
check "and no complaint of its own" test ! -s err
kill $hostile
rm hostile libmlx5.so.1

try "$rdmaquota" doctor --pid none
check "doctor of a wrong pid" refuses 2 "--pid needs a number from 1 on, not 'none'"
try "$rdmaquota" doctor --pid 0
check "doctor of pid 0" refuses 2 "--pid needs a number from 1 on, not '0'"
try "$rdmaquota" top --delay soon
check "top with no number" refuses 2 "--delay needs a number, not 'soon'"
try "$rdmaquota" __complete do
check "doctor is completed" prints "doctor"
try "$rdmaquota" __complete doctor --
check "and its options" grep -qx -- --pid out

# --- completion -----------------------------------------------------------------------------------

for shell in bash zsh fish; do
    try "$rdmaquota" completion $shell
    check "completion $shell" cmp out "$here/../../tools/rdmaquota/completions/rdmaquota.$shell"
done
try "$rdmaquota" __complete s
check "commands are completed" prints "show
set
suggest
slurm"
try "$rdmaquota" __complete run --limit m
check "resources are completed" prints "mr=
mr_bytes=
mw="
try "$rdmaquota" __complete run --mode a
check "modes are completed" prints "audit"
try "$rdmaquota" __complete set rxe0 dm
check "limits of set are completed" prints "dm=
dm_bytes="
try bash -c 'PATH=$1:$PATH
eval "$(rdmaquota completion bash)"
COMP_LINE="rdmaquota show --j" COMP_POINT=18 COMP_WORDS=(rdmaquota show --j) COMP_CWORD=2
_rdmaquota
echo "${COMPREPLY[*]}"' - "$(dirname "$rdmaquota")"
check "bash completes" grep -qx -- --json out

# --- the rest -------------------------------------------------------------------------------------

try bash -c '"$1" show >/dev/full' - "$rdmaquota"
check "output that cannot be written is an error" refuses 1 "cannot write the output"
truncate -s 100 quota/policy-5
try "$rdmaquota" which
check "a truncated policy is refused" refuses 1 "quota/policy-5"
truncate -s 100 quota/tenants/default/here/limits-5
try "$rdmaquota" show
check "truncated limits are refused" refuses 1 "here/limits-5"
"$rdmaquota" reload policy.toml >/dev/null
truncate -s 100 $ledger/ledger
try "$rdmaquota" show
check "a truncated ledger is refused" refuses 1 "$ledger"
try "$rdmaquota" reload policy.toml
check "reload replaces it" says "/5.unusable."

# --- repair ---------------------------------------------------------------------------------------

# A program that is counted until descriptor 7 is closed.
hold() {
    rm -f held
    mkfifo held
    "$ledger_user" rxe0 qp=3 <held >/dev/null &
    holder=$!
    exec 7>held
    for ((i = 0; i < 3000; i++)); do "$rdmaquota" show | grep -q ledger_user && break; sleep 0.1; done
}
try "$rdmaquota" repair
check "repair of a good ledger" says "nothing to repair"
truncate -s 100 $ledger/ledger
try "$rdmaquota" repair
check "repair replaces a ledger that was cut short" says "/5.unusable."
hold
kill -KILL $holder
wait $holder 2>/dev/null
try "$rdmaquota" repair
check "repair uncharges what the dead held" says "uncharged what 1 ended processes held"
hold
try "$rdmaquota" repair --new
check "repair --new replaces a good ledger" says "a new ledger is in place"
check "and names the programs that stay with the old one" says "until started again: $holder (ledger_user)"
exec 7>&-
wait $holder
rm -r $ledger
try "$rdmaquota" repair
check "repair without a ledger" refuses 1 "run 'rdmaquota reload' to make it"
"$rdmaquota" reload policy.toml >/dev/null

if [[ $(id -u) -eq 0 ]]; then
    # A copy in a place that all users can reach, which the build may not be in.
    chmod 755 "$work"
    mkdir -p tree/tools/rdmaquota tree/provider
    cp "$rdmaquota" tree/tools/rdmaquota/
    cp -a "$build"/provider/librdmaquota*.so tree/provider/
    copy=$work/tree/tools/rdmaquota/rdmaquota
    rm -rf quota && "$rdmaquota" reload policy.toml >/dev/null
    as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
    try "${as_nobody[@]}" "$copy" show
    check "show works for every user" says "tenant default"
    try "${as_nobody[@]}" "$copy" set rxe0 qp=1
    check "set is refused to other users" refuses 1 "run as root"
    try "${as_nobody[@]}" "$copy" tenant bind default
    check "binding a container is refused to other users" refuses 1 "only root"
    try "${as_nobody[@]}" "$copy" reload policy.toml
    check "reload is refused to other users" refuses 1 "ermission denied"
    try "${as_nobody[@]}" "$copy" run --limit qp=1 -- "$copy" show
    check "run works for every user" says "tenant default"
else
    echo "# not as root: nothing is tried as another user"
fi

# --- what people read ----------------------------------------------------------------------------
try "$rdmaquota" run --help
for resource in $(sed -n 's/^Resources: \(.*\)\.$/\1/p' out | tr -d ,); do
    check "$resource is told of in docs/policy.md" grep -q "^|.*\`$resource\`.*|" "$here/../../docs/policy.md"
    check "$resource is told of in rdmaquota(1)" grep -q "^$resource " "$here/../../rdma-core.d/man/rdmaquota.1.in"
    check "$resource is told of in the policy's template" grep -q "^#.*\b$resource\b" "$default_policy"
done

try python3 "$here/manual_options.py" "$rdmaquota" "$here/../../rdma-core.d/man"
check "options are the same in --help and in the man pages" prints ""

echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]
