#!/bin/bash
# shares_test.sh BUILD: three children of one parent share what it may use, with and without the sidecar; soft limits and
# their grace. Runs as root in the guest.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh"
# shellcheck source=test/integration/sidecar.sh
. "$here/sidecar.sh"
objects=$programs/verbs_objects
chmod 755 "$work"
for user in ann bea cat; do useradd --no-create-home $user; done
# As a program, so that a signal to it reaches what it runs: as USER COMMAND...
mkdir bin
cat > bin/as << 'END'
#!/bin/sh
user=$1
shift
exec setpriv --reuid="$user" --regid="$(id -g "$user")" --init-groups "$@"
END
chmod 755 bin bin/as
PATH=$work/bin:$PATH
# The kernel's own count of QPs on the device, without those that are its own.
kernel_qps() { rdma resource show "$device" | sed -n 's/.* qp \([0-9]*\) .*/\1/p'; }
own_qps=$(kernel_qps)
qps() { echo $(($(kernel_qps) - own_qps)); }
# figure TENANT KEY: of its QPs on the device
figure() {
    rdmaquota show "$1" --json | /usr/bin/python3 -c '
import json, sys
cell = json.load(sys.stdin)["tenants"][0]["devices"].get(sys.argv[1], {}).get("qp", {})
print(cell.get(sys.argv[2], ""))' "$device" "$2"
}
limits_of() { echo "$(figure lab/ann limit) $(figure lab/bea limit) $(figure lab/cat limit)"; }
usages() { # of the three
    rdmaquota show --json | /usr/bin/python3 -c '
import json, sys
tenants = {tenant["name"]: tenant for tenant in json.load(sys.stdin)["tenants"]}
print(*(tenants[name]["devices"].get(sys.argv[1], {}).get("qp", {}).get("usage", 0)
        for name in ("lab/ann", "lab/bea", "lab/cat")))' "$device"
}
# made FILE: how many QPs a program made in all
made() { sed -n 's/^rc: \([0-9]*\) of.*/\1/p' "$1" | awk '{ sum += $1 } END { print sum + 0 }'; }
# hold USER N [STEP...]: makes N QPs and keeps them until `let_go USER`, takes the steps then, and ends
declare -A holder
hold() {
    rm -f "keys.$1" "out.$1"
    mkfifo "keys.$1"
    as "$1" "$objects" "rc=$2" wait "${@:3}" < "keys.$1" > "out.$1" 2>&1 &
    holder[$1]=$!
    eval "exec {fd_$1}> keys.$1"
    waits "out.$1"
}
let_go() {
    eval "echo >&\$fd_$1; exec {fd_$1}>&-"  # others may have inherited it
    wait "${holder[$1]}"
}

cat > lab.toml << 'END'
version = 1
grant_wait = "5s"  # the guest is slow
[tenant.lab."*"]
qp = 1000
[tenant."lab/ann"]
match = [{ user = "ann" }]
[tenant."lab/ann"."*"]
qp = { guarantee = 100 }
[tenant."lab/bea"]
match = [{ user = "bea" }]
[tenant."lab/bea"."*"]
qp = { guarantee = 100 }
[tenant."lab/cat"]
match = [{ user = "cat" }]
weight = 200
END

# --- without the sidecar
rdmaquota reload lab.toml > /dev/null
is "without a sidecar: guarantee, and the rest by weight" "$(limits_of)" "300 300 400"
run as ann "$objects" rc=350
has "the share holds" "$out" "rc: 300 of 350, then EDQUOT"
has "and the denial says why" "$log" " may use, and other tenants have the rest"
rdmaquota set lab '*' qp=500 > /dev/null
is "a lower limit of the parent is divided at once" "$(limits_of)" "175 175 150"
rdmaquota unset lab '*' qp > /dev/null
is "and a higher one" "$(limits_of)" "300 300 400"
out=$(rdmaquota set lab/ann "$device" qp=200)
has "a child's own limit holds" "$out" "max -> 200 (tenant lab/ann)"
is "and leaves its share to others" "$(limits_of)" "200 $(figure lab/bea limit) $(figure lab/cat limit)"
rdmaquota unset lab/ann "$device" qp > /dev/null

# --- with it
start_sidecar
hold cat 900
is "one who wants more gets what others leave, but for their guarantees" "$(made out.cat)" 800
is "by the kernel's count, too" "$(qps)" 800
hold ann 150
is "an owner gets its guarantee at once" "$(made out.ann)" 100
is "and no more while a borrower has the rest" "$(qps)" 900
# what is freed is kept for its owner for ten seconds from the last time that it asked
earmarked() { due=$(figure lab/ann earmarked) && [ "${due:-0}" -gt 0 ]; }
eventually "something is earmarked" earmarked
has "show says what is earmarked" "$(rdmaquota show lab/ann)" "$due earmarked for it"
is "which is what the borrower frees" "$([ "${due:-0}" -gt 0 ] && echo yes || echo "$due")" yes
is "the borrower is frozen" "$([ "$(figure lab/cat limit)" -lt 800 ] && echo yes)" yes
owed=$(figure lab/cat debt)
is "JSON says what it owes" "$([ "${owed:-0}" -gt 0 ] && echo yes || echo "$owed")" yes
top_shows() { (pause 1; printf q) | script -qec "rdmaquota top" /dev/null | tr -d '\r' | grep 'lab/cat' | grep -F " $owed "; }
eventually "top shows the debt" top_shows
ok "top, too"
has "show says what it owes" "$(rdmaquota show lab/cat)" "above its share"
has "and so do the events" "$(cat sidecar.log)" "tenant lab/cat uses 800 of qp on $device, more than its share of"
let_go cat
let_go ann
await "tenant lab/cat uses no more than its share of qp on $device again"
has "and when it owes nothing any more" "$(cat sidecar.log)" "lab/cat uses no more than its share"
is "which JSON says, too" "$(figure lab/cat debt)" ""
is "nothing is earmarked then" "$(figure lab/ann earmarked)" ""
hold ann 400
is "what was freed goes to who wants it" "$(made out.ann)" 400
let_go ann
hold cat 900
hold ann 100 rc=300
let_go cat
let_go ann
is "also when that wants it at once" "$(made out.ann)" 400

# --- a table of demands, by programs that give back and create all the time; asking waits for the default time only
sed -i '/^grant_wait/d' lab.toml
rdmaquota reload lab.toml > /dev/null
until_near() { # EXPECTED: each has that, but for the fiftieth that they give back all the time
    eventually "the three have $1" is_near "$1"
}
is_near() {
    local have wanted i off
    got=$(usages)
    echo "$got"
    read -r -a have <<< "$got"
    read -r -a wanted <<< "$1"
    for i in 0 1 2; do
        off=$((have[i] - wanted[i]))
        [ ${off#-} -le $((wanted[i] / 50 + 3)) ] || return 1
    done
}
echo "# what ann, bea and cat want: what each got: the reference"
for demands in '0 0 1000' '1000 0 0' '200 200 1000' '1000 1000 0' '1000 1000 1000' '150 1000 1000' '50 60 70'; do
    wanting=()
    read -r -a amounts <<< "$demands"
    users=(ann bea cat)
    for i in 0 1 2; do
        user=${users[i]}
        mkfifo "until.$user"
        as "$user" "$programs/want" "${amounts[i]}" < "until.$user" > "want.$user" 2>&1 &
        wanting+=($!)
        eval "exec {fd_$user}> until.$user"
    done
    # shellcheck disable=SC2086 # three words
    expected=$(/usr/bin/python3 "$here/shares_table.py" $demands)
    near=no
    until_near "$expected" && near=yes
    echo "# $demands: $got: $expected"
    is "who wants $demands gets the reference's part" "$near" yes
    now=$(qps)
    is "and all have no more than 1,000" "$([ "$now" -le 1000 ] && echo yes || echo "$now")" yes
    for user in ann bea cat; do eval "echo >&\$fd_$user; exec {fd_$user}>&-"; done
    wait "${wanting[@]}"
    rm -f until.ann until.bea until.cat
done

# --- a child that writes what it likes into its ledger, as its members can
ledger=$(echo /run/rdmaquota/tenants/lab+cat/here/ledgers/*/ledger)
forge() { # AMOUNT: cat's gate of QPs on its first device
    as cat /usr/bin/python3 -c '
import struct, sys
with open(sys.argv[1], "r+b") as file:
    file.seek(4096 + 12288 + 8)
    file.write(struct.pack("<Q", int(sys.argv[2])))' "$ledger" "$1"
}
rdmaquota set lab/cat "$device" qp=500 > /dev/null
hold cat 10
looks_pass
forge 4000000
looks_pass
hold ann 600
got=$(made out.ann)
is "a gate forged upwards takes no more from others than the forger's own limit" \
    "$([ "$got" -ge 400 ] && echo yes || echo "$got")" yes
let_go ann
hold bea 100
is "and no guarantee" "$(made out.bea)" 100
let_go bea
forge 0
looks_pass
hold ann 400
is "a gate forged downwards takes nothing from others" "$(made out.ann)" 400
let_go ann
run as cat "$objects" rc=600
got=$(sed -n 's/^rc: \([0-9]*\) of.*/\1/p' <<< "$out")
is "nor does it give the forger more than its own limit" "$([ "$got" -le 490 ] && echo yes || echo "$got")" yes
let_go cat
rdmaquota unset lab/cat "$device" qp > /dev/null

# --- a sidecar that hears and does not answer, or late, or that is dead
stop_sidecar
sed -i '1a grant_wait = "2s"' lab.toml
rdmaquota reload lab.toml > /dev/null
cat > silent.py << 'END'
"""silent.py SECONDS PATH...: listens at sockets, and answers after so long"""
import os, select, socket, sys, time

listening, due = [], []
for path in sys.argv[2:]:
    if os.path.lexists(path):
        os.unlink(path)
    listening.append(socket.socket(socket.AF_UNIX))
    listening[-1].bind(path)
    os.chmod(path, 0o666)
    listening[-1].listen(64)
print("listens", flush=True)
while True:
    for ready in select.select(listening, [], [], 0.1)[0]:
        due.append((time.monotonic() + float(sys.argv[1]), ready.accept()[0]))
    while due and due[0][0] < time.monotonic():
        try:
            due.pop(0)[1].sendall(b'{"version":1,"done":"divided"}\n')
        except OSError:
            pass
END
sockets=(/run/rdmaquota/control.sock /run/rdmaquota/tenants/lab+cat/here/control.sock)
silent() { # SECONDS
    : > silent.out
    /usr/bin/python3 silent.py "$1" "${sockets[@]}" > silent.out 2>&1 &
    silent=$!
    eventually "it listens" contains silent.out listens
}
# denied WHAT: cat, which has a share of 400 and could have more, is denied after the two seconds, and told why
denied() {
    local begin=${EPOCHREALTIME/./}
    run as cat "$objects" rc=410
    took=$(((${EPOCHREALTIME/./} - begin) / 1000))
    echo "# $1: $took ms in all"
    has "$1: denied" "$out" "rc: 400 of 410, then EDQUOT"
    has "$1: with the reason" "$log" " may use, and other tenants have the rest"
}
# Not before the bound, and long before an answer came.
waited() { is "$1: after the bound" "$([ "$took" -ge 2000 ] && [ "$took" -lt 200000 ] && echo yes || echo "$took")" yes; }
silent 600
denied "a sidecar that is silent"
waited "a sidecar that is silent"
kill -9 $silent
wait $silent 2> /dev/null
silent 300
denied "one that answers late"
waited "one that answers late"
kill -9 $silent
wait $silent 2> /dev/null
denied "a dead one"
rm -f "${sockets[@]}"
start_sidecar
looks_pass
kill -STOP $sidecar
denied "one that is stopped"
waited "one that is stopped"
kill -CONT $sidecar
run as cat "$objects" rc=410
has "when it goes on, so do programs" "$out" "rc: 410 of 410"
stop_sidecar
sed -i 's/^grant_wait.*/grant_wait = "10s"  # the guest is slow/' lab.toml
rdmaquota reload lab.toml > /dev/null
start_sidecar

# --- nobody who asks waits for ever, and all who ask at once are answered
hold bea 1
begin=${EPOCHREALTIME/./}
mkfifo until
exec 8<> until
many=()
for i in $(seq 100); do
    as cat "$objects" rc=10 wait < until > "many.$i" 2>&1 &
    many+=($!)
done
wait_times() { [ "$(cat many.* | grep -c waiting)" -ge "$1" ]; }
eventually "100 programs are answered" wait_times 100
total=0
for i in $(seq 100); do total=$((total + $(made "many.$i"))); done
is "100 programs that ask at once get no more than is free" "$([ "$total" -le 800 ] && echo yes || echo "$total")" yes
echo "# 100 programs: $total QPs, $(((${EPOCHREALTIME/./} - begin) / 1000)) ms"
# Some may have waited in vain, on a machine that is too slow to answer all of them within ten seconds.
gets_rest() {
    run as cat "$objects" rc=$((801 - total))
    echo "$out"
    [[ $out == *"rc: $((800 - total)) of "* ]]
}
eventually "the next one gets all that is left" gets_rest
ok "and what they left, the next one gets"
{
    kill -9 "${many[@]}"
    wait "${many[@]}"
} 2> /dev/null
let_go bea

# The same of three tenants at once, with the wait that is usual: nobody is kept longer than that, whoever asks beside it.
sed -i '/^grant_wait/d' lab.toml
rdmaquota reload lab.toml > /dev/null
many=() gates=()
users=(ann bea cat)
for i in $(seq 99); do
    rm -f "gate.$i" "many.$i"
    mkfifo "gate.$i"
    exec {fd}<> "gate.$i"
    gates+=("$fd")
    as "${users[i % 3]}" "$objects" wait rc=20 wait < "gate.$i" > "many.$i" 2>&1 &
    many+=($!)
done
eventually "99 programs have started" wait_times 99
begin=${EPOCHREALTIME/./}
for fd in "${gates[@]}"; do echo >&"$fd"; done
eventually "99 programs are answered" wait_times 198
took=$(((${EPOCHREALTIME/./} - begin) / 1000))
ok "99 programs of three tenants that ask at once are all answered"
now=$(qps)
is "and have no more than there is" "$([ "$now" -le 1000 ] && echo yes || echo "$now")" yes
echo "# 99 programs of three tenants: $now QPs, the slowest after $took ms"
{
    kill -9 "${many[@]}"
    wait "${many[@]}"
} 2> /dev/null
for fd in "${gates[@]}"; do exec {fd}>&-; done

# --- whatever happens, the kernel never has more than the parent may use
most=0 samples=0
eventually "the kernel has destroyed all" prints 0 qps
is "all is gone that was killed" "$(qps)" 0
# Objects of all kinds are bounded, too, by what the kernel's rdma cgroup counts of those who churn.
echo +rdma > /sys/fs/cgroup/cgroup.subtree_control
mkdir -p /sys/fs/cgroup/lab
rdmaquota set lab "$device" hca_object=900 > /dev/null
objects_now() { sed -n "s/^$device .*hca_object=\([0-9]*\).*/\1/p" /sys/fs/cgroup/lab/rdma.current; }
# Looks at the kernel all the time.
(
    trap 'echo $most $most_objects $samples > samples; exit' TERM
    most_objects=0
    while :; do
        now=$(qps)
        [ "$now" -le $most ] || most=$now
        now=$(objects_now)
        [ "${now:-0}" -le "$most_objects" ] || most_objects=$now
        samples=$((samples + 1))
        [ $samples -lt 40 ] || [ $most -lt 400 ] || [ $most_objects -lt 400 ] || : > often
    done
) &
sampler=$!
stop_sidecar
seed=${RDMAQUOTA_SEED:-$RANDOM}
RANDOM=$seed
# Killed after a moment, again and again: its first pass comes before it has loaded its program into the kernel.
(
    trap 'kill -9 $!; wait $!; echo $lives > lives; exit' TERM
    lives=0
    while :; do
        rdmaquotad 2> /dev/null &
        pause $((RANDOM % 4)).$((RANDOM % 10))
        kill -9 $!
        wait $!
        lives=$((lives + 1))
    done
) 2> /dev/null &
unruly=$!
# shellcheck disable=SC2016 # expanded by the inner shell
in_lab() { exec sh -c 'echo $$ > /sys/fs/cgroup/lab/cgroup.procs && exec "$@"' lab "$@"; }
churns=()
end=$((SECONDS + 20)) latest=$((SECONDS + 300))
[ "${RDMAQUOTA_TIER-}" != all ] || end=$((SECONDS + 60))
stopped=''
while [ $SECONDS -lt $end ] || { [ ! -e often ] && [ $SECONDS -lt $latest ]; }; do
    while [ ${#churns[@]} -lt 6 ]; do
        users=(ann bea cat)
        in_lab as ${users[RANDOM % 3]} "$programs/churn" 600 < forever > /dev/null 2>&1 &
        churns+=($!)
    done
    pick=$((RANDOM % ${#churns[@]}))
    case $((RANDOM % 10)) in
        0) kill -9 "${churns[pick]}"; wait "${churns[pick]}" 2> /dev/null; unset "churns[pick]"; churns=("${churns[@]}") ;;
        1) kill -STOP "${churns[pick]}"; stopped=${churns[pick]} ;;
        2) [ -z "$stopped" ] || kill -CONT "$stopped" 2> /dev/null ;;
        3) rdmaquota set lab/cat "$device" qp=$((200 + RANDOM % 800)) > /dev/null 2>&1 ;;
        4) rdmaquota set lab/bea "$device" --guarantee qp=$((RANDOM % 300)) > /dev/null 2>&1 ;;
        5) rdmaquota set lab "$device" qp=$((500 + RANDOM % 501)) > /dev/null 2>&1 ;;
    esac
done
for pid in "${churns[@]}"; do kill -CONT "$pid"; kill -9 "$pid"; wait "$pid"; done 2> /dev/null
kill $sampler
wait $sampler
read -r most most_objects samples < samples
is "at random: the kernel never had more than 1,000" "$([ $most -le 1000 ] && echo yes || echo $most)" yes
is "nor more than 900 objects" "$([ "$most_objects" -le 900 ] && echo yes || echo "$most_objects")" yes
is "and the parent was used well" "$([ $most -ge 400 ] && [ "$most_objects" -ge 400 ] && echo yes || echo "$most $most_objects")" yes
is "as it was seen often enough" "$([ "$samples" -ge 40 ] && echo yes || echo "$samples")" yes
kill $unruly
wait $unruly
echo "# seed $seed: the sidecar was killed $(cat lives) times, the kernel had $most QPs and $most_objects objects at most in $samples samples"
start_sidecar

# --- soft limits: grace is long while something is to be seen within it, however slow the machine is, and short to be over
grace() {
    policy << END
version = 1
[tenant.default."*"]
qp = 12
[tenant."lab/ann"]
match = [{ user = "ann" }]
grace = "$1"
[tenant."lab/ann"."*"]
qp = { limit = 10, soft = 4 }
END
}
grace 10m
hold ann 8
is "a soft limit may be exceeded" "$(made out.ann)" 8
has "show marks it" "$(rdmaquota show lab/ann)" "8 +"
await "tenant lab/ann uses 8 of qp on $device, more than its soft limit of 4"
ok "an event says so"
has "with what is left" "$(rdmaquota show lab/ann)" "of grace left"
left=$(figure lab/ann grace_left_s)
is "as JSON does" "$([ "${left:-0}" -gt 0 ] && [ "$left" -le 600 ] && echo yes || echo "$left")" yes
run as ann "$objects" rc=3
has "but not the limit" "$out" "rc: 2 of 3, then EDQUOT"
is_over() { rdmaquota show lab/ann | grep -F "grace is over"; }
grace 1s
eventually "grace is over" is_over
has "when grace is over, show says so" "$(rdmaquota show lab/ann)" "grace is over"
run as ann "$objects" rc=1
has "and the soft limit holds" "$out" "rc: 0 of 1, then EDQUOT"
has "which the denial says" "$log" "this soft limit has been exceeded for longer than the grace period"
kill -9 $sidecar
wait $sidecar 2> /dev/null
start_sidecar
run as ann "$objects" rc=1
has "also after the sidecar was killed and started again" "$out" "rc: 0 of 1, then EDQUOT"
let_go ann
grace 10m
hold ann 6
is "below it again, it may be exceeded anew" "$(made out.ann)" 6
let_go ann
await "tenant lab/ann is no longer above its soft limit of qp"
ok "which is an event, too"
# Who went above it first may be gone: the time goes on while others are above. Both are there before either goes above.
hold ann 1 rc=4 wait
first=${holder[ann]}
mkfifo keys.second
as ann "$objects" rc=1 wait rc=4 wait < keys.second > out.second 2>&1 &
second=$!
exec 8> keys.second
waits out.second 1
eval "echo >&\$fd_ann"
waits out.ann 2
echo >&8
waits out.second 2
kill -9 "$first"
wait "$first" 2> /dev/null
exec {fd_ann}>&-
grace 1s
eventually "grace is over" is_over
run as ann "$objects" rc=1
has "grace goes on when the one who crossed it died" "$out" "rc: 0 of 1, then EDQUOT"
echo >&8
exec 8>&-
wait $second
rdmaquota set lab/ann "$device" --soft qp=7 > /dev/null
is "set --soft" "$(figure lab/ann soft)" 7

# --- a tenant that is made for its first program has a share at once
cat > lab.toml << 'END'
version = 1
grant_wait = "0s"
[tenant.new."*"]
qp = 100
[tenant."new/{user}"]
match = [{ user = "ann" }, { user = "bea" }, { user = "cat" }]
END
printf '[tenant."new/{job}"]\nmatch = [{ cgroup = "/new/{job}", members = ["root"] }]\n' > job.toml
sed '/{user}/,$d' lab.toml | cat - job.toml > jobs.toml
rdmaquota reload jobs.toml > /dev/null
mkdir -p /sys/fs/cgroup/new
for job in a b c; do
    has "the first program of job $job is not denied while there is room" "$( (in_cgroup new/$job "$objects" rc=3) < /dev/null 2>&1)" "rc: 3 of 3"
done
rdmaquota reload lab.toml > /dev/null
has "who may not see the others is told that the sum is part of it" "$(as ann rdmaquota show new)" "tenant new, of which you may see these figures only"
lacks "and nothing of them" "$(as ann rdmaquota show --summary)" "new/bea"
stop_sidecar
finish
