#!/bin/bash
# rpm_cycle.sh WORK: installs, upgrades and removes the packages in WORK/repo (release 1 and 2 of ours, and those that rpm_root.sh
# makes) by dnf and rpm in WORK/root, which has nothing but these. Runs as root with mounts of its own (rpm.sh calls it).
set -u
# shellcheck source=test/integration/tap.sh
. "$(dirname "$0")/../integration/tap.sh"
work=$1 root=$1/root
own=/usr/lib64/rdmaquota
driver=/etc/libibverbs.d/rdmaquota.driver
conf=/etc/ld.so.conf.d/00-rdmaquota.conf
ours=(rdmaquota librdmaquota-provider rdmaquotad rdmaquota-slurm)

in_root() { chroot "$root" env -i PATH=/usr/bin:/usr/sbin LANG=C.UTF-8 "$@"; }
# by_dnf COMMAND...: with the repository of WORK alone
by_dnf() {
    dnf -y --installroot "$root" --releasever 9 --disablerepo '*' --repofrompath "test,$work/repo" --enablerepo test --nogpgcheck \
        --setopt install_weak_deps=False --setopt "cachedir=$work/dnf" --setopt "logdir=$work" --setopt "persistdir=$work" "$@" > "$work/dnf.log" 2>&1 ||
        { grep -v '^$' "$work/dnf.log" | tail -n 20; return 1; }
}
by_rpm() { rpm --force-debian --root "$root" "$@"; }
# refused COMMAND...: which says so into WORK/refused
refused() { ! "$@" > "$work/refused" 2>&1; }
of_release() { find "$work/repo" \( -name 'rdmaquota*' -o -name 'librdmaquota*' \) -name "*-$1.*.rpm"; }
release_of() { by_rpm -q --qf '%{release}\n' "${ours[@]}" | sort -u; }
link() { readlink "$root$1"; }
# loaded NAME: the file that the loader gives programs
loaded() { in_root ldconfig -p | sed -n "s|^[[:space:]]*$1 .*=> ||p" | head -n 1; }
# there PATTERN...: what is there of it
there() { (cd "$root" && for pattern in "${@/#/.}"; do compgen -G "$pattern"; done); }
everything() {
    (cd "$root" && find . -xdev \( -path ./tmp -o -path ./proc -o -path ./dev -o -path ./var -o -path ./etc/ld.so.cache \) -prune -o -printf '%p %y %m %u %g %l\n' |
        LC_ALL=C sort)
}

paths() { sed 's/^\.//; s/ .*//' "$1" | sort; }
# unowned: directories with new files that no package owns
unowned() {
    everything > "$work/now"
    comm -13 <(paths "$work/before") <(paths "$work/now") |
        while read -r file; do by_rpm -qf "$file" > /dev/null 2>&1 || echo "${file%/*}"; done | sort -u | tr '\n' ' '
}

mkdir -p "$root"
mount -t tmpfs tmpfs "$root"
mkdir -p "$root/dev" "$root/proc"
mount --bind /dev "$root/dev"
mount -t proc proc "$root/proc"

succeeds "dnf installs what a node has" by_dnf install base libibverbs-44 slurm
in_root ldconfig
everything > "$work/before"
# shellcheck disable=SC2046 # a file each
succeeds "dnf installs the packages" by_dnf install $(of_release 1)
is "all four" "$(release_of)" 1
lacks "without a scriptlet that fails" "$(cat "$work/dnf.log")" "scriptlet failed"
is "files are as they were packed" "$(by_rpm -V "${ours[@]}")" ""
is "they are root's" "$(by_rpm -q --qf '[%{FILEUSERNAME}:%{FILEGROUPNAME}\n]' "${ours[@]}" | sort -u)" root:root
is "no two packages have a file" "$(by_rpm -q --qf '[%{FILEMODES:perms} %{FILENAMES}\n]' "${ours[@]}" | grep -v '^d' | sort | uniq -d)" ""
is "what no package owns are the links that adopt makes, and units that are enabled" "$(unowned)" \
    "/etc/systemd/system/multi-user.target.wants $own $own/real $own/shadow "
is "nothing depends on a version of libibverbs" "$(by_rpm -q --requires "${ours[@]}" | grep -i -e ibverbs -e mlx5)" ""
is "and nothing gets the shadow for a libmlx5" "$(by_rpm -q --provides "${ours[@]}" | grep -i -e 'lib.*\.so')" ""
newest=$(by_rpm -q --requires librdmaquota-provider | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1)
is "the provider needs no glibc newer than 2.34" "$(printf '%s\n' "${newest:-none}" GLIBC_2.34 | sort -V | tail -n 1)" GLIBC_2.34

is "libibverbs is told of the provider" "$(cat "$root$driver")" "driver rdmaquota"
is "programs get the shadow of libmlx5" "$(loaded libmlx5.so.1)" $own/shadow/libmlx5.so.1
is "which needs the real one" "$(link $own/real/libmlx5.so.1)" /usr/lib64/libmlx5.so.1
is "and there are no others" "$(there "$own/shadow/*")" ".$own/shadow/libmlx5.so.1"
has "the command runs" "$(in_root rdmaquota --version)" "rdmaquota 0."
is "the policy that it brings is right" "$(in_root rdmaquota check /etc/rdmaquota/rdmaquota.toml | head -n 1)" "/etc/rdmaquota/rdmaquota.toml: ok"
has "the sidecar starts far enough to say what it is" "$(in_root rdmaquotad --help)" rdmaquotad
is "Slurm is told of the plugin, which is there" "$(there "$(sed 's/^optional //' "$root/etc/slurm/plugstack.conf.d/rdmaquota.conf")")" \
    ./usr/lib64/slurm/spank_rdmaquota.so
is "the units are enabled" "$(cd "$root/etc/systemd/system/multi-user.target.wants" && echo *)" "other.service rdmaquota.service rdmaquotad.service"
is "where no system runs, no policy is put in force" "$(there /run/rdmaquota)" ""

# A program that has the shadow, the real libmlx5 and the provider from before all that comes now.
mkfifo "$root/tmp/input"
(exec chroot "$root" env -i PATH=/usr/bin LD_PRELOAD=libmlx5.so.1 cat /tmp/input) > "$work/output" 2>&1 &
running=$!
exec 8<> "$root/tmp/input"
provider_of() { grep -o '[0-9]* */.*librdmaquota.so.*' "/proc/$running/maps" | sort -u; }
eventually "a program has the provider" contains "/proc/$running/maps" librdmaquota.so
before=$(provider_of)

# EL 9's private ABI changes within the major version.
for version in 57:57 61:59; do
    libibverbs=${version%:*} abi=${version#*:}
    succeeds "libibverbs $libibverbs is installed" by_dnf upgrade "libibverbs-$libibverbs"
    is "the provider is registered" "$(cat "$root$driver")" "driver rdmaquota"
    succeeds "for private ABI $abi" test -f "$root/usr/lib64/libibverbs/librdmaquota-rdmav$abi.so"
done
has "one that is not known is told by rpm's output" "$(by_rpm -U "$work/repo"/libibverbs-99-*.rpm 2>&1)" \
    "private ABI 99, which this version does not know"
is "libibverbs is told of no provider then" "$(there $driver $conf)" ""
is "and programs get the real libmlx5" "$(loaded libmlx5.so.1)" /usr/lib64/libmlx5.so.1
succeeds "the one from before is installed again" by_dnf downgrade libibverbs-44
is "which brings the provider back" "$(cat "$root$driver")" "driver rdmaquota"
is "and the shadow" "$(loaded libmlx5.so.1)" $own/shadow/libmlx5.so.1

succeeds "a vendor's libmlx5 is installed" by_dnf install vendor-mlx5
is "the shadow needs that one" "$(link $own/real/libmlx5.so.1)" /opt/vendor/libmlx5.so.1
is "and is what programs get" "$(loaded libmlx5.so.1)" $own/shadow/libmlx5.so.1
succeeds "it is removed" by_rpm -e vendor-mlx5
is "the shadow needs the system's again" "$(link $own/real/libmlx5.so.1)" /usr/lib64/libmlx5.so.1

cp "$root/etc/rdmaquota/rdmaquota.toml" "$work/policy.toml"
echo '# mine' >> "$root/etc/rdmaquota/rdmaquota.toml"
succeeds "dnf upgrades the packages" by_dnf upgrade "${ours[@]}"
is "all of them" "$(release_of)" 2
lacks "without a scriptlet that fails" "$(cat "$work/dnf.log")" "scriptlet failed"
is "the administrator's policy stays" "$(tail -n 1 "$root/etc/rdmaquota/rdmaquota.toml")" "# mine"
is "the provider is registered once" "$(cat "$root$driver" "$root$conf")" "driver rdmaquota
$own/shadow"
is "the shadow is there" "$(loaded libmlx5.so.1)" $own/shadow/libmlx5.so.1
is "the units stay enabled" "$(cd "$root/etc/systemd/system/multi-user.target.wants" && echo *)" "other.service rdmaquota.service rdmaquotad.service"
is "a program that runs keeps the provider that it has" "$(provider_of)" "$before (deleted)"
echo ended >&8
exec 8>&-
wait $running
is "and ends as it should" "$? $(cat "$work/output")" "0 ended"

mkdir -p "$root/run/rdmaquota"
touch "$root/run/rdmaquota/policy-99"
# shellcheck disable=SC2046 # a file each
succeeds "a version that is too old for what runs is refused" refused by_rpm -U --oldpackage $(of_release 1)
has "with the reason" "$(cat "$work/refused")" "layout 99, it knows "
is "and what was there stays" "$(release_of)" 2
rm -r "$root/run/rdmaquota"
# shellcheck disable=SC2046
succeeds "else an older version is installed again" by_rpm -U --oldpackage $(of_release 1)
is "all of it" "$(release_of)" 1

cp "$work/policy.toml" "$root/etc/rdmaquota/rdmaquota.toml"
succeeds "dnf removes the packages" by_dnf remove "${ours[@]}"
lacks "without a scriptlet that fails" "$(cat "$work/dnf.log")" "scriptlet failed"
in_root ldconfig
everything > "$work/after"
is "the root is as it was before" "$(diff "$work/before" "$work/after")" ""
is "and programs get the real libmlx5" "$(loaded libmlx5.so.1)" /usr/lib64/libmlx5.so.1

# shellcheck disable=SC2046
succeeds "rpm installs them too" by_rpm -i $(of_release 2)
echo '# mine' >> "$root/etc/rdmaquota/rdmaquota.toml"
succeeds "and removes libibverbs and them in one run" by_rpm -e libibverbs "${ours[@]}"
is "nothing that libibverbs or the loader reads is left" "$(there $driver $conf $own '/usr/lib64/libibverbs/*rdmaquota*')" ""
is "a policy of the administrator's is kept aside" "$(tail -n 1 "$root/etc/rdmaquota/rdmaquota.toml.rpmsave")" "# mine"
finish
