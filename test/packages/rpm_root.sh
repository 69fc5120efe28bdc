# Shell helpers of the suite rpm: packages that stand for those of a Red Hat, made of this machine's own files. Sourced by rpm.sh.
# shellcheck shell=bash
# shellcheck disable=SC2154 # rpm.sh has set $work
triplet=$(gcc -print-multiarch)

# stub NAME VERSION TREE [PROVIDES...]: builds a package of the files in TREE, into $work/repo
stub() {
    local name=$1 version=$2 tree=$3 top=$work/stubs
    mkdir -p "$top" "$work/repo"
    {
        printf '%s\n' "Name: $name" "Version: $version" "Release: 1" "Summary: files of this machine" "License: MIT" "AutoReq: no"
        [ $# = 3 ] || printf 'Provides: %s\n' "${@:4}"
        printf '%s\n' '%global __os_install_post %{nil}' '%description' 'For a test.' '%install' "cp -a $tree/. %{buildroot}" '%files' '/*'
    } > "$top/$name.spec"
    rpmbuild -bb --define "_topdir $top" "$top/$name.spec" > "$top/log" 2>&1 || { tail -n 5 "$top/log" >&2; return 1; }
    find "$top/RPMS" -name '*.rpm' -exec mv -t "$work/repo" {} +
}

# needed_by FILE...: the shared libraries of programs
needed_by() { ldd "$@" 2> /dev/null | sed -n 's|^[^/]*\(/[^ ]*\) (.*|\1|p' | sort -u; }

# base FILE...: the shell, what scriptlets call, and the libraries of these and of FILE..., where a Red Hat has them. Debian's own
# directory for libraries is a link to that, since its libibverbs looks for providers there.
base() {
    local tree=$work/base program library programs=()
    mkdir -p "$tree"/usr/{bin,sbin,lib64,lib} "$tree"/etc/ld.so.conf.d "$tree"/{dev,proc,run,tmp,var}
    for program in bash cat chmod cp env grep ln ls mkdir mountpoint mv od readlink rm rmdir sed sort systemctl touch umount xargs; do
        programs+=("$(command -v $program)")
    done
    cp -L "${programs[@]}" "$tree/usr/bin"
    ln -s bash "$tree/usr/bin/sh"
    cp -L /sbin/ldconfig "$tree/usr/sbin"
    for library in $(needed_by "${programs[@]}" "$@") /lib64/ld-linux-x86-64.so.2 "/usr/lib/$triplet/libnl-route-3.so.200" "/usr/lib/$triplet/libnl-3.so.200"; do
        install -D -m 755 "$library" "$tree/usr/lib64/${library#*"/$triplet/"}"
    done
    mv "$tree/usr/lib64/lib64/"* "$tree/usr/lib64" && rmdir "$tree/usr/lib64/lib64"
    ln -s ../lib64 "$tree/usr/lib/$triplet"
    for program in bin sbin lib lib64; do ln -s usr/$program "$tree/$program"; done
    printf '%s\n' 'include ld.so.conf.d/*.conf' > "$tree/etc/ld.so.conf"
    echo /usr/lib64 > "$tree/etc/ld.so.conf.d/zz-base.conf"
    echo 'root:x:0:0:root:/root:/bin/sh' > "$tree/etc/passwd"
    echo 'root:x:0:' > "$tree/etc/group"
    mkdir -p "$tree"/usr/share/{doc,licenses,man/man{1,5,7,8},bash-completion/completions} "$tree"/usr/lib/{systemd/system,tmpfiles.d} \
        "$tree"/etc/systemd/system/multi-user.target.wants
    touch "$tree/etc/systemd/system/multi-user.target.wants/other.service"
    # As a Red Hat: what no other file names is not enabled.
    mkdir -p "$tree/usr/lib/systemd/system-preset"
    echo 'disable *' > "$tree/usr/lib/systemd/system-preset/99-default-disable.preset"
    stub base 1 "$tree" /bin/sh 'rtld(GNU_HASH)'
}

# libibverbs VERSION PABI: this machine's libibverbs, as one of that private ABI
libibverbs() {
    local tree=$work/libibverbs-$1 libraries=/usr/lib/$triplet
    mkdir -p "$tree/usr/lib64/libibverbs" "$tree/usr/bin" "$tree/etc/libibverbs.d"
    cp -a "$libraries"/libibverbs.so.1* "$libraries"/libmlx5.so.1* "$tree/usr/lib64"
    cp -a "$libraries"/libibverbs/librxe-* "$tree/usr/lib64/libibverbs"
    cp -a /usr/bin/ibv_devices "$tree/usr/bin"
    echo 'driver rxe' > "$tree/etc/libibverbs.d/rxe.driver"
    sed -i "s/IBVERBS_PRIVATE_34/IBVERBS_PRIVATE_$2/" "$(readlink -f "$tree/usr/lib64/libibverbs.so.1")"
    stub libibverbs "$1" "$tree"
}

# vendor_mlx5: a libmlx5 of a vendor, at a path that the loader prefers
vendor_mlx5() {
    local tree=$work/vendor
    mkdir -p "$tree/opt/vendor" "$tree/etc/ld.so.conf.d"
    cp -L "/usr/lib/$triplet/libmlx5.so.1" "$tree/opt/vendor"
    echo /opt/vendor > "$tree/etc/ld.so.conf.d/vendor.conf"
    stub vendor-mlx5 1 "$tree"
}

# slurm: nothing but the version for which the plugin is
slurm() {
    local major
    mkdir -p "$work/slurm/usr/lib64/slurm" "$work/slurm/etc/slurm"
    major=$(sed -n 's/^#define SLURM_VERSION_NUMBER *0x\(..\)\(..\).*/0x\1 0x\2/p' /usr/include/slurm/slurm_version.h)
    # shellcheck disable=SC2086 # two numbers
    stub slurm "$(printf '%d.%02d.8' $major)" "$work/slurm"
}
