# The second half of run.sh: boots the guest, carries its output over and ends with its status.
# shellcheck shell=bash disable=SC2154,SC2317 # variables of run.sh; functions that traps call

run=$(mktemp -d "${TMPDIR:-/tmp}/rdmaquota-vm.XXXXXX")
qemu='' readers=()

clean_up() {
    # Only what was started here, by its pid; `timeout` passes the signal on to QEMU.
    [ -z "$qemu" ] || kill "$qemu" 2>/dev/null || :
    [ -z "$qemu" ] || wait "$qemu" 2>/dev/null || :
    [ ${#readers[@]} -eq 0 ] || kill "${readers[@]}" 2>/dev/null || :
    rm -rf "$run" ${staged:+"$staged"}
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# Commas separate QEMU's options.
escape() { echo "${1//,/,,}"; }

port() { # NAME: a virtio-serial port whose other end is the file of that name
    arguments+=(-chardev "file,id=$1,path=$(escape "$run/$1")" -device "virtserialport,chardev=$1,name=$1")
    : >"$run/$1"
}

# choose_processor: how QEMU runs the guest's instructions. The emulated processor is without la57, since a fifth level of page
# tables makes each translation slower, and without erms and fsrm, since TCG executes `rep movs` and `rep stos`, which the
# kernel then copies and clears with, byte by byte. --icount keeps erms and fsrm: the figures of docs/costs.md were counted so.
choose_processor() {
    if [ -n "$icount" ]; then
        arguments+=(-cpu "max,la57=off" -accel "tcg,thread=single" -icount "shift=0,sleep=off" -smp 1)
    elif [ "$accelerator" = kvm ]; then
        arguments+=(-cpu host -accel kvm -smp "${cpus:-1}")
    else
        arguments+=(-cpu "max,la57=off,erms=off,fsrm=off" -accel "tcg,thread=multi" -smp "${cpus:-1}")
    fi
}

make_arguments() {
    # norandmaps: with random addresses QEMU would translate a program anew in each process, and a process would take twice as
    # long to start. init_on_alloc=0: clearing each page is dear in an emulator, and no test is about it.
    local kernel_arguments="console=ttyS0 quiet panic=-1 oops=panic nokaslr norandmaps mitigations=off reboot=t${kernel_words-}"
    [ -n "$icount" ] || kernel_arguments+=" init_on_alloc=0"
    arguments=(-nodefaults -no-user-config -display none -no-reboot -nic none -machine q35 -m "$mem"
        -kernel "$guest/vmlinux" -initrd "$run/initrd" -serial "file:$run/console" -append "$kernel_arguments"
        -fsdev "local,id=host,path=/,security_model=none,readonly=on,multidevs=remap"
        -device "virtio-9p-pci,fsdev=host,mount_tag=host"
        # Without an ioeventfd, a write is in the file before the guest goes on, so that none is lost when the guest ends.
        -device "virtio-serial-pci,ioeventfd=off")
    port stdout
    port stderr
    port status
    choose_processor
    [ -z "$trace" ] || arguments+=(-serial "unix:$(escape "$run/control"),server=on,wait=off"
        -monitor "unix:$(escape "$run/monitor"),server=on,wait=off" -D "$run/trace")
    [ -z "$out" ] || arguments+=(-fsdev "local,id=out,path=$(escape "$out"),security_model=none,multidevs=remap"
        -device "virtio-9p-pci,fsdev=out,mount_tag=out")
}

# guest_failed REASON: prints the end of the console, which says why, and keeps a copy of all of it.
guest_failed() {
    local log=$cache_dir/last-failure.log
    cp "$run/console" "$log" 2>/dev/null || :
    tail -n 40 "$run/console" 2>/dev/null | sed 's/^/console: /' >&2 || :
    say "$1; the whole console is in $log"
    exit 125
}

[ -z "$stage" ] || stage_build
make_initrd
make_arguments

boot() {
    # pdeathsig: the machine ends with this script, even if SIGKILL ends that.
    setpriv --pdeathsig TERM timeout --foreground --kill-after=5 "$timeout" \
        setpriv --pdeathsig KILL qemu-system-x86_64 "${arguments[@]}" </dev/null >"$run/qemu" 2>&1 &
    qemu=$!
    if [ -n "$trace" ]; then
        "$vm_dir/tracer.py" "$trace" "$run/control" "$run/monitor" "$run/trace" &
        readers+=($!)
    fi
    # Files and tail rather than pipes: QEMU never waits for a slow reader, and loses no output that one has not read yet.
    tail -q -c +1 -f -s 0.05 --pid="$qemu" "$run/stdout" &
    readers+=($!)
    tail -q -c +1 -f -s 0.05 --pid="$qemu" "$run/stderr" >&2 &
    readers+=($!)

    ended=0
    wait "$qemu" || ended=$?
    qemu=''
    wait "${readers[@]}" || :
    readers=()
}

boot
# A kernel that patches itself while another CPU runs that code now and then panics in QEMU's emulation, within its first
# seconds. Nothing of the command has run then.
if [ $ended = 0 ] && [ ! -s "$run/status" ] && [ ! -s "$run/stdout" ] && [ ! -s "$run/stderr" ]; then
    say "the guest ended while it booted; it is started once more"
    boot
fi

read -r word text <"$run/status" || word=''
case $word in
    exit) exit "$text" ;;
    error) guest_failed "$text" ;;
esac
if [ "$ended" = 124 ] || [ "$ended" = 137 ]; then
    guest_failed "the guest did not end within $timeout s; if the command needs longer, raise --timeout"
fi
cat "$run/qemu" >&2
guest_failed "the guest ended before the command did (QEMU's status: $ended); see the console for a panic"
