#!/bin/bash
# demo_test.sh: README's first command, tools/demo.sh, shows what it says. Boots a guest of its own.
set -u
here=$(dirname "$(realpath "$0")")
# shellcheck source=test/integration/tap.sh
. "$here/tap.sh"
shown=$("$here/../../tools/demo.sh" < /dev/null 2>&1)
is "the demonstration ends well" $? 0
# after COMMAND: what the demonstration printed behind that command, up to the next one
after() { awk -v command="\$ $1" '$0 == command { found = 1; next } found && /^(\$|#|$)/ { exit } found' <<< "$shown"; }
has "at first a program gets all it asks for" "$shown" $'\nrc: 5 of 5\n'
has "then two" "$shown" $'\nrc: 2 of 5, then EDQUOT\n'
has "a denial names the way out" "$shown" "tenant default uses 2 of 2, 1 more asked by pid"
has "a live change lets it go on" "$(after 'cat output')" "rc: 2 of 2"
has "show tells who holds them" "$shown" "root  program  rxe0"
has "libmlx5's own calls are held" "$(after './mlx5_program -d mlx5_0 rc=1 dvqp=2 devx=1:0x500 umem=2:1048576' | xargs)" \
    "dvqp: 1 of 2, then EDQUOT devx: 0 of 1, then EDQUOT"
has "and loaded through the shadow library" "$shown" "rdmaquota/shadow/libmlx5.so.1"
has "a bypass is reported" "$(after 'rdmaquota events | grep bypass')" "pd: 5 in the kernel, 0 charged"
has "the kernel refuses under the guard" "$shown" "pd: 2 of 5 EDQUOT"
is "the last table has the guard's figures" "$(after 'rdmaquota guard' | grep ^default | xargs)" "default rxe0 pd 0 2 1"
finish
