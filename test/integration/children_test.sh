#!/bin/bash
# children_test.sh BUILD: forked children of programs that withhold memory from them live as without rdmaquota; leaks are found; and
# what closes beside others' locks of the device's file. Runs as root in the guest after an installation.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh"
policy <<< 'version = 1
[process."*"]
qp = 10'

for bytes in 100 4000 65536; do
    for how in fork_init dontfork wipe; do
        run "$programs/withheld" $how $bytes
        is "$how of $bytes bytes: a child lives" "$out" "child: ended with 0"
    done
done
run "$programs/withheld" heap 100
is "without all of the heap, too" "$out" "child: ended with 0"
# What libibverbs itself can do in such a child is the measure.
for how in dontfork fork_init; do
    run bare "$programs/withheld" $how 65536 child
    without=$out
    run "$programs/withheld" $how 65536 child
    is "$how: a child that opens the device fares as without rdmaquota" "$out" "$without"
done

# What rdmaquota keeps of a program's objects does not hide that they are leaked.
leaks() { "$@" "$programs/leaker" 2>&1 | grep -o '^Direct leak of .* object(s)' | sort; }
without=$(leaks bare)
is "LeakSanitizer finds a leaked QP and a leaked context" "$(grep -c . <<< "$without")" 2
is "with rdmaquota, too" "$(leaks env)" "$without"

# Another user locks the whole device file all the time; a context that was closed does not count for that.
chmod 666 /dev/infiniband/uverbs0
policy <<< 'version = 1
[process."*"]
hca_handle = 1'
for microseconds in 2000 20; do
    setpriv --reuid=65534 --regid=65534 --clear-groups "$programs/lock_spinner" /dev/infiniband/uverbs0 $microseconds < forever > spinner 2>&1 &
    spinner=$!
    waits spinner
    run "$programs/reopener" 300
    is "beside a lock of $microseconds us in a loop a device is opened and closed 300 times under hca_handle = 1" "$out" "opened: 300 of 300"
    kill $spinner
    wait $spinner 2> /dev/null
done
finish
