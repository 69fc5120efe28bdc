# guest.sh BUILD [DEVICE], to be sourced by tests in the guest, after an installation: changes to a new directory, and
# defines shell helpers.
# shellcheck shell=bash disable=SC2034 # each test uses some of these

here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
# shellcheck source=test/integration/tap.sh
. "$here/tap.sh"
programs=$1/test/programs
device=${2:-rxe0}
work=$(mktemp -d)
cd "$work" || exit 1
# What reads from `forever` waits until it is killed.
mkfifo forever
exec 5<> forever

# The file by which libibverbs loads the provider, and the directory of the real libraries.
registration=/etc/libibverbs.d/rdmaquota.driver
# The files of tenant default.
here_default=/run/rdmaquota/tenants/default/here
default_ledger=$here_default/ledgers/5
real_dir=$(dirname "$(realpath "$(ldconfig -p | awk '$1 == "libibverbs.so.1" { print $NF; exit }')")")

# bare COMMAND...: as on a node without rdmaquota: neither its registration nor the shadow libraries
bare() {
    mv $registration "$work"
    LD_LIBRARY_PATH=$real_dir "$@"
    local status=$?
    mv "$work/rdmaquota.driver" $registration
    return $status
}

# A fresh policy from standard input, live at once.
policy() {
    cat > policy.toml
    rdmaquota reload policy.toml > /dev/null || not_ok "reload" "$(cat policy.toml)"
}

# run PROGRAM...: its output in $out, its stderr in $log, its status in $status
run() {
    out=$("$@" 2> log)
    status=$?
    log=$(cat log)
}

# usage_of RESOURCE: of the tenant on $device. In shell, since Python starts slowly in the guest.
usage_of() {
    local cells
    cells=$(rdmaquota show --json)
    cells=${cells%%'"processes"'*}
    cells=${cells#*'"devices"'}
    [[ $cells == *"\"$device\":{"* ]] || cells=''
    cells=${cells#*"\"$device\":{"}
    [[ ${cells%%'}}'*} =~ \"$1\":\{\"usage\":([0-9]+) ]] && echo "${BASH_REMATCH[1]}" || echo 0
}

# ledger: all that is in use on $device, as lines of name and amount, with its unit or limit
ledger() { rdmaquota show | awk -v device="$device" '$1 == device && $3 != "0" { print $2, $3, $4 }'; }

# another_device NAME; its file is then $file
another_device() {
    ip link add "link_$1" type dummy && ip link set "link_$1" up
    rdma link add "$1" type rxe netdev "link_$1"
    file=/dev/infiniband/$(basename "$(dirname "$(grep -lx "$1" /sys/class/infiniband_verbs/*/ibdev)")")
    eventually "the device $1 has its file" test -e "$file"
}
no_device() { rdma link delete "$1"; ip link delete "link_$1"; }

# knob FILE VALUE COMMAND...: of each command of mlx5sim
knob() {
    local command
    for command in "${@:3}"; do echo "$2" > "/sys/kernel/debug/mlx5sim/$command/$1"; done
}
calls() { cat "/sys/kernel/debug/mlx5sim/$1/calls"; }
# libmlx5 makes its doorbell pages (UARs) by commands that are not verbs; the kernel counts each as an object.
uars() { echo $(($(calls alloc_uar) - $(calls dealloc_uar))); }

# in_cgroup NAME PROGRAM...: in a cgroup of its own, whose objects `kernel NAME RESOURCE` tells, on $device
in_cgroup() {
    mkdir "/sys/fs/cgroup/$1"
    # shellcheck disable=SC2016 # expanded by the inner shell
    sh -c 'echo $$ > "/sys/fs/cgroup/$1/cgroup.procs"; shift; exec "$@"' sh "$@"
}
kernel() { sed -n "s/^$device .*$2=\([0-9]*\).*/\1/p" "/sys/fs/cgroup/$1/rdma.current"; }

# start PROGRAM...: in the background, with its input from the pipe `keys`, until it waits
start() {
    rm -f keys running
    mkfifo keys
    "$@" < keys > running 2>&1 &
    program=$!
    exec 9> keys
    eventually "$* waits" waits_or_is_ready
}
waits_or_is_ready() { contains running waiting || contains running ready; }
# until_waiting N: until the program that was started waits for the Nth time
until_waiting() { waits running "$1"; }
proceed() { echo >&9; exec 9>&-; wait "$program"; }

# until_listening PORT: until a program listens there by TCP
until_listening() { eventually "a program listens at $1" listens "$1"; }
listens() {
    local hex table line
    printf -v hex ':%04X' "$1"
    for table in /proc/net/tcp /proc/net/tcp6; do
        while read -r -a line; do
            [[ ${line[1]} != *$hex || ${line[3]} != 0A ]] || return 0
        done < $table
    done
    return 1
}
# until_listening_by_cm PORT: through librdmacm
until_listening_by_cm() { eventually "a program listens at $1" listens_by_cm "$1"; }
listens_by_cm() { [[ $(rdma resource show cm_id) == *LISTEN*:"$1 "* ]]; }
