#!/bin/bash
# kernel_test.sh BUILD [lives]: what the sidecar sees of this kernel, against the kernel's own counts. With `lives` (or
# RDMAQUOTA_LONG) also by the fallback of kprobes, and attaching between any two steps of an object's life. Runs as root in
# the guest after an installation.
set -u
# shellcheck source=test/integration/tap.sh
. "$(dirname "$0")/tap.sh"
# shellcheck source=test/integration/sidecar.sh
. "$(dirname "$0")/sidecar.sh"
programs=$1/test/programs watch=$1/test/integration/kernel_watch lives=$1/test/integration/kernel_lives
cd "$(mktemp -d)" || exit 1
make_group
all=${2-${RDMAQUOTA_LONG-}}

# seen PATTERN: the last line of the watch about the program that matches, without its beginning
seen() { grep -e "^pid $program .*$1" watch.log | tail -n 1 | sed 's/^[^:]*: //'; }

# start_watch: until it is attached, or has said that it is not
start_watch() {
    : > watch.log
    "$watch" 3600 > watch.log &
    watcher=$!
    eventually "the watch is attached or says that it is not" contains watch.log attached:
}
stop_watch() {
    kill "$watcher"
    wait "$watcher" 2> /dev/null
}
# look: until the watch has taken a complete look, begun after this call
look() {
    eventually "the watch looks" contains watch.log looked $(($(grep -c looked watch.log) + 2))
}

# start STEP...: verbs_objects in the group, until it waits
start() { start_program "$programs/verbs_objects" "$@" wait; }
start_program() {
    rm -f keys
    mkfifo keys
    # shellcheck disable=SC2016 # expanded by the inner shell
    sh -c 'echo $$ > "$0/cgroup.procs" && exec "$@"' $group "$@" < keys > running 2>&1 &
    program=$!
    exec 9> keys
    waits running
}
finish_program() { echo >&9; exec 9>&-; wait "$program"; }

# Created; destroyed; not destroyed because they are in use; taken back because the answer could not be written.
objects='rc=3 cq=2 mr=3:4096 drop=mr mr=2:8192 srq=1 ah=2 mw=1 pd=1 ctx=2 drop=ctx ctx=1 busy=2 faulty=3'
check() { # HOW: what the watch sees of `objects`, created now; and, with `all`, the lives of objects that it attaches in
    # shellcheck disable=SC2086 # one word each
    start $objects
    look
    local now current made
    now=$(seen 'hca_object')
    current=$(sed -n 's/.*hca_object=//p' $group/rdma.current | xargs)
    made=${now#*hca_object }
    is "$1: the program went as far as it should" "$(grep -E '^(busy|faulty|ctx)' running | xargs)" \
        "ctx: 2 of 2 ctx: 1 of 1 busy: 2 of 2 faulty: 3 of 3"
    is "$1: as many objects as rdma.current tells" "${made%% *}" "$current"
    has "$1: of the right kinds" "$(sed 's/ ([0-9-]*)//g' <<< "$now")" \
        " qp 3 mr 2 mr_bytes 16384 cq 3 hca_handle 2 pd 2 srq 1 mw 1 ah 2"
    finish_program
    look
    is "$1: its end is seen" "$(grep -c "^ended $program$" watch.log)" 1
    stop_watch
    [ "$all" ] || return
    "$lives" > lives.log 2>&1
    sed -n "s/^\(not ok\|ok\) - /&$1: /p; /^ *#/p" lives.log
    passed=$((passed + $(grep -c '^ok' lives.log))) failed=$((failed + $(grep -c '^not ok' lives.log)))
    has "$1: all of them were tried" "$(tail -n 1 lives.log)" " passed, "
}

echo "# $(uname -r)"
start_watch
is "the program is attached, and sees all" "$(head -n 1 watch.log)" "attached: true"
check "attached"

# users: whom the watch named in its last complete look as users of what the program opened
users() { tac watch.log | awk '/^looked/ { if (n++) exit } n' | grep -o "^pid [0-9]* opener $program " | sort -u; }
missed() { grep -q '^missed' watch.log; }
users_are() { [ "$(users)" = "$1" ]; }
users_are_or_missed() { users_are "$1" || missed; }

# remembered: what the watch still tells of a program's children after their end, and after the program's; nothing where
# the kernel skipped the watch meanwhile, since a child may then seem to have objects for as long as the file is open
remembered() {
    start_watch
    start_program "$programs/raw_uverbs" ioctl 3 40
    made=$(xargs < running)
    eventually "the children are remembered no more" users_are_or_missed "pid $program opener $program "
    while_open=$(users)
    while_open=${while_open//$program/P}
    finish_program
    eventually "nobody is remembered" users_are_or_missed ""
    afterwards=$(users)
    stop_watch
}
for _ in {1..20}; do
    remembered
    missed || break
    echo "# the kernel skipped the watch: once more"
done
is "children that came and went" "$made" "pd: 3 of 3 waiting"
is "are remembered no more" "$while_open" "pid P opener P "
is "nor is one whose last child closed the device" "$afterwards" ""

# --- what only newer kernels have ---
start_with() { # POLICY STEP...: a program in the group, and rdmaquotad
    echo "$1" > policy.toml
    rdmaquota reload policy.toml > /dev/null
    start_sidecar
    start "${@:2}"
}
start_with 'version = 1
[tenant.default]
backstop = "/sidecar"
[tenant.default."*"]
hca_object = 12' pd=5
if [ -e $group/rdma.events ]; then
    : > sidecar.log
    (in_group "$programs/raw_uverbs" write 20 < /dev/null > raw)
    is "the backstop bounds who goes around the quota" "$(head -n 1 raw)" "pd: 5 of 20 EAGAIN"
    await "backstop_denied: "
    has "what the kernel denies there is told" "$line" "hca_object of cgroup /sidecar on rxe0: 1 more denied by rdma.max, 1 in all"
    has "and counted" "$(ask status)" '"denied":{"hca_handle":0,"hca_object":1}'
else
    echo "# this kernel has no rdma.events"
fi
finish_program
stop_sidecar
start_with 'version = 1' odp=2:65536 mr=1
looks_pass 7
if grep -q 'odp: 2 of 2' running; then
    said=$(grep -e bypass -e leak sidecar.log)
    is "on-demand memory is no bypass" "$said${said:+; the program: $(cat running)}" ""
else
    echo "# on this kernel $(grep odp running)"
fi
finish_program
stop_sidecar

# fexit is used for a function that the modules' type information tells of.
if [ "$all" ]; then
    for module in ib_core ib_uverbs ib_uverbs_support; do
        [ ! -e /sys/kernel/btf/$module ] || mount --bind /dev/null /sys/kernel/btf/$module
    done
    start_watch
    has "without it what cannot be seen is said" "$(cat watch.log)" "no process is seen to open a device"
    stop_watch
fi

mount -t tmpfs none /sys/kernel/btf
# shellcheck disable=SC2086 # one word each
start $objects
start_watch
look
has "without any there is no program" "$(head -n 1 watch.log)" "only what netlink lists is known"
stop_watch
has "but netlink" "$(sed 's/ ([0-9-]*)//g' <<< "$(seen hca_object)")" " qp 3 mr 2 mr_bytes 16384 cq 3 hca_handle 2 pd 2 srq 1"
finish_program
finish
