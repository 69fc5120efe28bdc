#!/bin/bash
# cycle.sh OLD NEW: installs the packages in OLD, upgrades to those in NEW, removes and purges them, and compares what is on the system before and
# after. Runs as root in a Debian root that can be thrown away, with /test/integration/tap.sh, and where apt can fetch packages.
set -u
old=$1 new=$2
# shellcheck source=test/integration/tap.sh
. /test/integration/tap.sh
libraries=/usr/lib/$(dpkg --print-architecture | sed 's/amd64/x86_64-linux-gnu/; s/arm64/aarch64-linux-gnu/')
driver=/etc/libibverbs.d/rdmaquota.driver
conf=/etc/ld.so.conf.d/00-rdmaquota.conf
slurm=/etc/slurm/plugstack.conf.d/rdmaquota.conf
export DEBIAN_FRONTEND=noninteractive

# What a package may leave behind: files with their mode and owner, what the loader finds, users.
system() {
    find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /build -o -path /test -o -path /old -o -path /new -o -path /ccache -o -path /var/cache -o -path '/var/log/*.log' -o -path /var/log/apt \
        -o -path /var/lib/apt -o -path /var/lib/dpkg -o -path /etc/ld.so.cache \) -prune -o -printf '%p %y %m %u %g %l\n' |
        LC_ALL=C sort
    ldconfig -p | sed 1d
    cat /etc/passwd /etc/group
}
# install DIR: all packages in it, in one run, as an administrator does
install() { dpkg --force-confold -i "$1"/*.deb > /tmp/dpkg.log 2>&1; }
is_refused() { ! install "$1"; }
# loaded NAME: from where the loader gives it to a program
loaded() { ldconfig -p | sed -n "s|^[[:space:]]*$1 .*=> ||p" | head -n 1; }
# changed FILE: what dpkg does when a package brings another file
changed() { dpkg-trigger --by-package=rdmaquota-test "$1" && dpkg --triggers-only --pending 2>&1; }

system > /tmp/before

succeeds "the packages are installed" install "$old"
is "with nothing to complain of" "$(grep -i -E 'warn|error|cannot|not found' /tmp/dpkg.log)" ""
is "files are as they were packed" "$(dpkg --verify rdmaquota librdmaquota-provider rdmaquotad rdmaquota-slurm)" ""
is "libibverbs is told of the provider" "$(cat $driver)" "driver rdmaquota"
abi=$(echo "$libraries"/libibverbs/librxe-rdmav*.so | sed 's/.*rdmav\(.*\).so/\1/')
succeeds "of its private ABI" test -f "$libraries/libibverbs/librdmaquota-rdmav$abi.so"
is "the loader gives programs the shadow of libmlx5" "$(loaded libmlx5.so.1)" "$libraries/rdmaquota/shadow/libmlx5.so.1"
is "which needs the real one" "$(ldd "$libraries/rdmaquota/shadow/libmlx5.so.1" | grep -c 'not found')" 0
is "which is there" "$(readlink -e "$libraries/rdmaquota/real/libmlx5.so.1")" "$(readlink -e "$libraries/libmlx5.so.1")"
has "the command tells its version" "$(rdmaquota --version)" "$(dpkg-query -W -f '${Version}' rdmaquota | sed 's/[~+].*//')"
is "the policy that it brings is right" "$(rdmaquota check /etc/rdmaquota/rdmaquota.toml | head -n 1)" \
    "/etc/rdmaquota/rdmaquota.toml: ok"
has "the sidecar starts far enough to say what it is" "$(rdmaquotad --help)" rdmaquotad
is "man pages are there" "$(man -w rdmaquota rdmaquotad rdmaquota.toml rdmaquota-provider 2> /dev/null | wc -l)" 4

is "Slurm is told of the plugin" "$(cat $slurm)" "optional $libraries/slurm-wlm/spank_rdmaquota.so"
is "which is there" "$(ls "$libraries/slurm-wlm/spank_rdmaquota.so")" "$libraries/slurm-wlm/spank_rdmaquota.so"
printf '%s\n' ClusterName=test SlurmctldHost=localhost NodeName=localhost 'PartitionName=all Nodes=ALL' \
    PlugStackConfig=/etc/slurm/plugstack.conf > /tmp/slurm.conf
has "and loaded by this release's Slurm" "$(SLURM_CONF=/tmp/slurm.conf srun --help 2>&1)" --rdma=
is "where no system runs, no policy is put in force" "$(ls -d /run/rdmaquota 2> /dev/null)" ""

# A libibverbs that the provider does not know.
real=$(readlink -e "$libraries/libibverbs.so.1")
cp -p "$real" /tmp/libibverbs.keep
sed -i "s/IBVERBS_PRIVATE_$abi/IBVERBS_PRIVATE_99/" "$real"
has "a private ABI that is not known is told" "$(changed "$libraries/libibverbs.so.1")" "private ABI 99, which this version does not know"
told=$(rdmaquota doctor)
has "by doctor, too" "$told" "this version of rdmaquota does not know private ABI 99, or is not installed; nothing is limited: install a newer"
lacks "which sends nobody to what cannot help" "$told" "rdmaquota/adopt"
lacks "programs say nothing of it" "$(ibv_devices 2>&1)" rdmaquota
is "libibverbs is then told of no provider" "$(ls $driver 2> /dev/null)" ""
is "and programs get the real libmlx5" "$(readlink -e "$(loaded libmlx5.so.1)")" "$(readlink -e "$libraries/libmlx5.so.1")"
sed -i "s/IBVERBS_PRIVATE_99/IBVERBS_PRIVATE_57/" "$real"
lacks "one that is known, and was not there before, is taken without a word" "$(changed "$libraries/libibverbs.so.1")" "private ABI"
is "libibverbs is told of the provider then" "$(cat $driver 2> /dev/null)" "driver rdmaquota"
succeeds "which has that private ABI" test -f "$libraries/libibverbs/librdmaquota-rdmav57.so"
sed -i "s/IBVERBS_PRIVATE_57/IBVERBS_PRIVATE_99/" "$real"
changed "$libraries/libibverbs.so.1" > /dev/null
is "until one comes that is not" "$(ls $driver 2> /dev/null)" ""
succeeds "a new libibverbs package" apt-get install -y --reinstall libibverbs1
is "brings the provider back" "$(cat $driver)" "driver rdmaquota"
is "and the shadow" "$(loaded libmlx5.so.1)" "$libraries/rdmaquota/shadow/libmlx5.so.1"
rm -f "$real.dpkg-new"
rm $driver
has "doctor knows what registers the provider again" "$(rdmaquota doctor)" "run $libraries/rdmaquota/adopt"
echo /other/architecture >> $conf
"$libraries/rdmaquota/adopt" && "$libraries/rdmaquota/adopt" --remove
is "what another architecture has registered stays" "$(cat $driver $conf 2> /dev/null)" "driver rdmaquota
/other/architecture"
sed -i 's/^.other.*/# a comment, which an installation from source has/' $conf
"$libraries/rdmaquota/adopt" && "$libraries/rdmaquota/adopt" --remove
is "and nothing when there is no other" "$(ls $driver $conf 2> /dev/null)" ""
"$libraries/rdmaquota/adopt"

# libibverbs of another architecture. (There is no compiler for one on others.)
if [ "$(dpkg --print-architecture)" = amd64 ]; then
    mkdir /tmp/foreign
    echo 'int nothing;' | gcc -m32 -shared -nostdlib -x c - -Wl,-soname,libibverbs.so.1 -o /tmp/foreign/libibverbs.so.1
    echo /tmp/foreign > /etc/ld.so.conf.d/foreign.conf
    has "a libibverbs for which there is no provider is told" "$("$libraries/rdmaquota/adopt" 2>&1)" \
        "/tmp/foreign/libibverbs.so.1 is of another architecture"
    rm -r /tmp/foreign /etc/ld.so.conf.d/foreign.conf
    is "and not when it is gone" "$("$libraries/rdmaquota/adopt" 2>&1)" ""
fi

# libmlx5 of another vendor, at another path.
mkdir -p /tmp/vendor/DEBIAN /tmp/vendor/usr/lib/vendor /tmp/vendor/etc/ld.so.conf.d
cp -L "$libraries/libmlx5.so.1" /tmp/vendor/usr/lib/vendor/libmlx5.so.1
echo /usr/lib/vendor > /tmp/vendor/etc/ld.so.conf.d/vendor.conf
printf 'Package: vendor-mlx5\nVersion: 1\nArchitecture: all\nMaintainer: nobody\nDescription: another libmlx5\n' > /tmp/vendor/DEBIAN/control
dpkg-deb -b /tmp/vendor /tmp/vendor.deb > /dev/null
shadowed() { readlink -e "$libraries/rdmaquota/real/libmlx5.so.1"; }
dpkg -i /tmp/vendor.deb > /dev/null 2>&1
is "libmlx5 at another path gets the shadow" "$(loaded libmlx5.so.1)" "$libraries/rdmaquota/shadow/libmlx5.so.1"
is "which needs that one, where the loader prefers it to Debian's" "$(shadowed)" /usr/lib/vendor/libmlx5.so.1
dpkg --force-depends -r ibverbs-providers > /dev/null 2>&1
is "or has no other" "$(shadowed)" /usr/lib/vendor/libmlx5.so.1
dpkg -P vendor-mlx5 > /dev/null 2>&1
is "without libmlx5 there is no shadow of it" "$(loaded libmlx5.so.1)" ""
apt-get install -y ibverbs-providers > /dev/null 2>&1
is "and Debian's again when it is there" "$(shadowed)" "$(readlink -e "$libraries/libmlx5.so.1")"

# An upgrade, with a policy of the administrator's own.
echo '# mine' >> /etc/rdmaquota/rdmaquota.toml
succeeds "a newer version is installed over it" install "$new"
is "the administrator's policy stays" "$(tail -n 1 /etc/rdmaquota/rdmaquota.toml)" "# mine"
is "the provider is registered once" "$(cat $driver $conf)" "driver rdmaquota
$libraries/rdmaquota/shadow"

is "Slurm is told of the plugin once" "$(cat $slurm)" "optional $libraries/slurm-wlm/spank_rdmaquota.so"

rm $slurm
succeeds "once more" install "$new"
is "which brings back nothing that the administrator took away" "$(ls $slurm 2> /dev/null)" ""
echo "optional $libraries/slurm-wlm/spank_rdmaquota.so timeout=60" > $slurm

# An older version where programs keep their books in a newer layout.
mkdir -p /run/rdmaquota
touch /run/rdmaquota/policy-99
succeeds "a version that is too old for what runs is refused" is_refused "$old"
has "with the reason" "$(cat /tmp/dpkg.log)" "layout 99, it knows 4"
is "and what was there stays" "$(dpkg-query -W -f '${Status} ${Version}\n' rdmaquota librdmaquota-provider rdmaquotad rdmaquota-slurm | sort -u)" \
    "install ok installed $(dpkg-deb -f "$new"/rdmaquota_*.deb Version)"
rm /run/rdmaquota/policy-99
succeeds "else an older version is installed again" install "$old"
succeeds "and the newer one" install "$new"

mkdir -p /var/log/rdmaquota && touch /var/log/rdmaquota/events.json
succeeds "the packages are removed" dpkg -r rdmaquota-slurm rdmaquotad rdmaquota librdmaquota-provider
is "nothing that libibverbs or the loader reads is left" "$(ls $driver $conf "$libraries"/rdmaquota "$libraries"/libibverbs/*rdmaquota* 2> /dev/null)" ""
is "nor Slurm" "$(ls /etc/slurm/plugstack.conf.d/*.conf "$libraries"/slurm-wlm/*rdmaquota* 2> /dev/null)" ""
is "programs get the real libmlx5" "$(readlink -e "$(loaded libmlx5.so.1)")" "$(readlink -e "$libraries/libmlx5.so.1")"
is "the policy is kept" "$(tail -n 1 /etc/rdmaquota/rdmaquota.toml)" "# mine"
succeeds "and so is the administrator's line for Slurm" install "$new"
is "which is in force when they are installed again" "$(cat $slurm)" "optional $libraries/slurm-wlm/spank_rdmaquota.so timeout=60"
rm $slurm
succeeds "all is removed once more" dpkg -r rdmaquota-slurm rdmaquotad rdmaquota librdmaquota-provider
succeeds "and installed" install "$new"
is "what was taken away before stays away" "$(ls $slurm 2> /dev/null)" ""
succeeds "all is removed" dpkg -r rdmaquota-slurm rdmaquotad rdmaquota librdmaquota-provider
succeeds "and purged" dpkg -P rdmaquota-slurm rdmaquotad rdmaquota librdmaquota-provider
system > /tmp/after
is "the system is as it was before" "$(diff /tmp/before /tmp/after)" ""
finish
