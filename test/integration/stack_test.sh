#!/bin/bash
# stack_test.sh BUILD: how much more stack verbs calls take with rdmaquota. Runs as root in the guest after
# an installation.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh"
# Bytes of stack that a step may take beyond what it takes without rdmaquota. The loader's frames come twice in the first list of
# devices, which loads the real providers inside the load of ours.
declare -A most_more=([list]=2560)

policy << 'EOF'
version = 1
[tenant.default."*"]
qp = 1
EOF

# more_stack: the steps that need more than they may
more_stack() {
    paste -d ' ' bare_stack with_stack | while read -r step _ without _ _ with; do
        [ "$with" -le $((without + ${most_more[$step]:-1024})) ] || echo "$step $with instead of $without"
    done
}

# Symbols are bound first, since the step that calls a function first would pay for that.
export LD_BIND_NOW=1
bare "$programs/stack" 1024 "$device" > bare_stack
"$programs/stack" 1024 "$device" > with_stack 2> log
sed 's/^/# bare: /' bare_stack
sed 's/^/# with: /' with_stack
is "each step's outcome, with one QP allowed" "$(paste -sd ' ' <(cut -d ' ' -f 1,2 with_stack))" \
    "list done open done create done second failed register done fault failed destroy done close done"
has "the second QP was denied by its limit" "$(cat log)" "qp"
is "no call needs much more stack than without rdmaquota" "$(more_stack)" ""

# A program's first denial and opening are those that need most.
unset LD_BIND_NOW
run "$programs/stack" 16 "$device"
is "all calls succeed on stacks of 16 KiB, Argobots' default" "$status $(grep -c . <<< "$out")" "0 8"
finish
