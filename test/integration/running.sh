# Shell helpers for tests in the guest with several programs that run at a time, each with a name; sourced after tap.sh. They
# work in the current directory: what a program prints is in out.NAME.
# shellcheck shell=bash

# launch NAME PROGRAM...: in the background until it waits, with its input from a pipe of its own
declare -A pids=() inputs=()
# What runs beside a program must not keep the program's input open.
without_inputs() {
    local input
    for input in "${inputs[@]}"; do exec {input}>&-; done
}
launch() {
    local name=$1 input
    shift
    mkfifo "keys.$name"
    (without_inputs; exec "$@") < "keys.$name" > "out.$name" 2>&1 &
    pids[$name]=$!
    exec {input}> "keys.$name"
    inputs[$name]=$input
    until_step "$name" 1
}
# until_step NAME N: until the program waits for the Nth time
until_step() { waits "out.$1" "$2"; }
go_on() { echo >&"${inputs[$1]}"; }
close_input() {
    local input=${inputs[$1]}
    unset "inputs[$1]"
    exec {input}>&-
}
end() {
    go_on "$1"
    close_input "$1"
    wait "${pids[$1]}"
}
