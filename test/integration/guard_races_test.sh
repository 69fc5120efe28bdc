#!/bin/bash
# guard_races_test.sh BUILD: the guard when things happen at once, on two CPUs: programs that change their requests, many
# that want the last of something, and honest ones that look alike. RDMAQUOTA_ROUNDS: how often. Runs as root in the guest.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh"
# shellcheck source=test/integration/sidecar.sh
. "$here/sidecar.sh"
# shellcheck source=test/integration/guard.sh
. "$here/guard.sh"
rounds=${RDMAQUOTA_ROUNDS:-12}
RANDOM=${RDMAQUOTA_SEED:-$RANDOM}

guard_policy deny 5 > policy.toml
rdmaquota reload policy.toml > /dev/null
# It begins while programs are in the middle of opening and making something.
for i in 1 2 3; do
    until [ -e begun ]; do "$programs/raw_uverbs" ioctl 1 < /dev/null; done > "early.$i" 2>&1 &
done
start_sidecar
guard_is deny
touch begun
wait %1 %2 %3
sort early.? | uniq -c | sed 's/^/# /'
is "who is in the middle of something when the guard begins is not refused" "$(cat early.? | sort -u | xargs)" "pd: 1 of 1 waiting"
is "or killed" "$(killed_so_far)" 0
until_counted default pd 0
is "and leaves nothing" "$(counted default pd) $(counted default hca_handle) $(counted node hca_object)" "0 0 0"

# most_seen FIGURE COMMAND...: the most that the function FIGURE told while the command ran
most_seen() {
    local most=0 now figure=$1
    shift
    "$@" < /dev/null > out 2>&1 &
    program=$!
    while kill -0 $program 2> /dev/null; do
        now=$($figure)
        [ "$now" -le $most ] || most=$now
    done
    wait $program 2> /dev/null
    echo $most
}
race() { # HOW ROUNDS [COUNT MOST]: until one was in time
    local most=0 now killed before
    before=$(killed_so_far)
    for i in $(seq 100); do
        now=$(most_seen pds timeout 60 "$programs/around" "$1" "${3:-50}")
        [ "$now" -le $most ] || most=$now
        killed=$(($(killed_so_far) - before))
        [ "$i" -lt "$2" ] || [ $killed = 0 ] || break
    done
    echo "# $i times $1: $most PDs at most, $killed killed"
    is "who changes a request while it is read gets one too many at most ($1)" "$([ $most -le "${4:-6}" ] && echo yes || echo $most)" yes
    is "and some did change it in time" "$([ $killed -gt 0 ] && echo yes)" yes
    until_counted default pd 0
    is "nothing of them is left in the books" "$(counted default pd)" 0
}
race racer "$rounds"
race disguise 3
race racers 3 4 9  # each of the four is in the middle of one at most

# 4 KiB at the look, and more than the limit when the kernel reads the length: one such MR, and no more.
long_mrs() { rdma resource show mr dev "$device" | grep -c 'mrlen 2000000'; }
most=0 before=$(killed_so_far)
for i in $(seq 100); do
    now=$(most_seen long_mrs timeout 60 "$programs/lengths" 2000000)
    [ "$now" -le $most ] || most=$now
    [ "$(killed_so_far)" = "$before" ] || break
done
echo "# $i times another length: $most such MRs at most"
is "who makes an MR longer than was looked at is killed" "$(($(killed_so_far) - before))" 1
is "after one of them" "$([ $most -le 1 ] && echo yes || echo $most)" yes
until_counted default mr_bytes 0
is "and nothing of it is left in the books" "$(counted default mr) $(counted default mr_bytes)" "0 0"

most=0 together=''
for _ in $(seq "$rounds"); do
    jobs=()
    for i in 1 2 3; do
        "$programs/around" threads 10 < forever > "many.$i" &
        jobs+=($!)
    done
    until [ "$(grep -l waiting many.? | wc -l)" = 3 ]; do
        now=$(pds)
        [ "$now" -le $most ] || most=$now
    done
    together+="$(($(sed -n 's/^pd: \([0-9]*\) .*/\1/p' many.? | paste -sd+))) "
    kill "${jobs[@]}"
    for i in "${jobs[@]}"; do wait "$i"; done 2> /dev/null
    rm many.?
    until_counted default pd 0
done
is "192 threads of three programs have just the limit together" "$(xargs -n 1 <<< "$together" | sort -u)" 5
is "and at no moment more" "$([ $most -le 5 ] && echo yes || echo $most)" yes

# Threads that open the device at once are one process, whose limit holds for all of them.
rdmaquota set "$device" pd=2 --process > /dev/null
followed
most=0
for _ in $(seq "$rounds"); do
    now=$("$programs/around" everywhere 10 < /dev/null | sed -n 's/pd: \([0-9]*\) .*/\1/p')
    [ "${now:-9}" -le $most ] || most=$now
done
is "64 threads with a file each have their process's limit together" $most 2
rdmaquota unset "$device" pd --process > /dev/null

# A limit for the sum over devices: nobody is refused because of what others have raised for a moment, to be refused.
{ guard_policy deny 1000; printf '[tenant.default.total]\npd = 20\n'; } > policy.toml
rdmaquota reload policy.toml > /dev/null
followed
for _ in $(seq "$rounds"); do "$programs/around" threads 1000 < /dev/null | grep pd:; done > summed
is "64 threads have just the limit of the sum" "$(sort -u summed)" "pd: 20 of 1000 EDQUOT"

guard_policy deny 16 > policy.toml
rdmaquota reload policy.toml > /dev/null
followed
before=$(killed_so_far)
"$programs/twins" "${RDMAQUOTA_ROUNDS:-200}" "$programs/raw_uverbs" ioctl 2 < /dev/null > twins 2>&1
tail -n 3 twins | sed 's/^/# /'
is "eight honest programs that are pid 1 of namespaces, started in the same tick: none refused, none killed" \
    "$(tail -n 1 twins), $(killed_so_far)" "rounds: ${RDMAQUOTA_ROUNDS:-200}, failed: 0, $before"
"$programs/twins" "$rounds" "$programs/verbs_objects" pd=1 < /dev/null > twins 2>&1
is "nor by the library" "$(grep pd: twins | sort -u), $(tail -n 1 twins), $(killed_so_far)" \
    "pd: 1 of 1, rounds: $rounds, failed: 0, $before"

# Who asks again and again for what the tenant has room for and the node has not, takes nothing from others meanwhile.
{
    guard_policy deny 16 | sed 's/^mr_bytes.*/mr_bytes = "64MiB"/'
    printf '[node."*"]\nmr_bytes = "8MiB"\n'
} > policy.toml
rdmaquota reload policy.toml > /dev/null
followed
sleep 10 | unlisted "$programs/registrar" $((64 << 20)) > large 2>&1 &
sleep 10 | unlisted "$programs/registrar" 65536 > small 2>&1
wait $!
sed 's/^/# /' large small
has "who asks for too much gets nothing" "$(cat large)" "
0 made, "
has "and is in nobody's way" "$(cat small)" " made, 0 refused"

# Others' locks of the device file are nobody's use of it.
"$programs/around" locked 2 < forever > locks 2>&1 &
keeper=$!
waits locks
rdmaquota set "$device" hca_handle=2 > /dev/null
followed
"$programs/raw_uverbs" ioctl 2 < /dev/null > locked 2>&1
is "beside one that keeps the device file locked there is room" "$(grep pd: locked)" "pd: 2 of 2"
kill $keeper
wait $keeper 2> /dev/null
rdmaquota set "$device" hca_handle=1 > /dev/null
followed
"$programs/sacrifices" pairs 500 < /dev/null > pairs 2>&1
is "threads that open a context by one file have no more than one, and are not killed" "$(head -n 2 pairs)" $'twice: 0\nkilled: 0'
until_counted default hca_handle 0
is "and leave none in the books" "$(counted default hca_handle)" 0
rdmaquota unset "$device" hca_handle > /dev/null

# When the guard begins, requests from before may be on their way: for ten seconds nobody is killed.
stop_sidecar
rdmaquota guard off > /dev/null
guard_policy deny 5 > policy.toml
rdmaquota reload policy.toml > /dev/null
unset RDMAQUOTA_TEST_GUARD_JUDGES_AT_ONCE
start_sidecar
guard_is deny
try "$programs/raw_uverbs" unread 10
is "when the guard begins, nobody is killed" "$out, $(killed_so_far)" "pd: 6 of 10 EDQUOT, 0"
export RDMAQUOTA_TEST_GUARD_JUDGES_AT_ONCE=yes
stop_sidecar
rdmaquota guard off > /dev/null
start_sidecar
guard_is deny
try "$programs/raw_uverbs" unread 10
is "later whoever makes too much by what could not be read is" "$ended, $(killed_so_far)" "137, 1"
rdmaquota set "$device" pd=10 > /dev/null
followed
"$programs/raw_uverbs" ioctl 8 < forever > many 2>&1 &
many=$!
waits many
rdmaquota unset "$device" pd > /dev/null
followed
is "who had more than the limit before it is left alone" "$(kill -0 $many && echo yes), $(killed_so_far)" "yes, 1"
try "$programs/raw_uverbs" ioctl 1
is "and nobody gets more" "$have" 8
kill $many
wait $many 2> /dev/null
until_counted default pd 0
try "$programs/raw_uverbs" ioctl 10
is "until there is room" "$out" "pd: 5 of 10 EDQUOT"

# Killed at any moment, they leave nothing.
for _ in $(seq "$rounds"); do
    "$programs/around" threads 8 < /dev/null > many.1 &
    victim=$!
    pause 0.0$((RANDOM % 10))
    kill -9 $victim
    wait $victim 2> /dev/null
done
until_counted default pd 0
is "killed in the middle they leave nothing" "$(counted default pd) $(counted default hca_handle) $(counted node pd)" "0 0 0"
stop_sidecar
rdmaquota guard off > /dev/null
finish
