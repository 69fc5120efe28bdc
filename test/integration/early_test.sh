#!/bin/bash
# early_test.sh BUILD: programs that load libmlx5 before libibverbs reads any configuration, on a node that has only
# mlx5_0, where libibverbs then never reads it; and what an installation puts into the loader's way, from Meson's installing
# to its uninstalling. Runs as root in the guest with --device mlx5sim.
set -u
meson install -C "$1" --no-rebuild --quiet || exit 1
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh" "$1" mlx5_0
real=$(realpath "$real_dir/libmlx5.so.1")
conf=/etc/ld.so.conf.d/00-rdmaquota.conf
shadow_dir=$(grep -v '^#' $conf)

# held NAME SEEN COMMAND...: the last line of it is SEEN, and the denial is said
held() {
    run "${@:3}"
    is "$1: held to qp=2" "${out##*$'\n'}" "$2"
    has "$1: the denial is said" "$log" "rdmaquota: qp on mlx5_0 denied (EDQUOT): tenant default uses 2 of 2"
}

# --- what is installed ------------------------------------------------------------------------------
is "the only device is mlx5_0" "$(ls /sys/class/infiniband)" mlx5_0
for name in libmlx5.so.1 libmlx5.so; do
    is "the loader finds our $name first" "$(ldconfig -p | awk -v name=$name '$1 == name { print $NF; exit }')" \
        "$shadow_dir/$name"
done
shadow=$shadow_dir/libmlx5.so.1
entries() { readelf -d "$shadow" | sed -n "s/.*($1).*\[\(.*\)\]/\1/p"; }
is "it bears the real one's name" "$(entries SONAME)" libmlx5.so.1
is "needs the real one and the provider by path, and nothing else" "$(entries NEEDED)" "$real_dir/libmlx5.so.1
$real_dir/libibverbs/librdmaquota.so"
nodes() { readelf -VW "$1" | sed -n '/definition/,/needs/s/.*Name: \([A-Z].*\)/\1/p' | sort; }
is "defines all of the real one's version nodes" "$(comm -13 <(nodes "$shadow") <(nodes "$real"))" ""
has "and coming ones" "$(nodes "$shadow")" "MLX5_1.99
"
is "and no function or object" \
    "$(readelf --dyn-syms -W "$shadow" | awk '$7 != "UND" && $7 != "ABS" && $1 ~ /^[0-9]+:$/')" ""
for other in efa mlx4 mana; do
    has "$other has one too" "$(readelf -d "$shadow_dir/lib$other.so.1")" "[$real_dir/lib$other.so.1]"
done

# --- load orders ------------------------------------------------------------------------------------
policy <<< 'version = 1
[tenant.default.mlx5_0]
qp = 2'
limit="2 of 4 QPs, then EDQUOT"
held "not linked to libmlx5" "rc: 2 of 4, then EDQUOT" "$programs/verbs_objects" -d mlx5_0 rc=4
held "linked with -lmlx5" "rc: 2 of 4, then EDQUOT" "$programs/verbs_objects_mlx5" -d mlx5_0 rc=4
held "dlopen of libmlx5.so.1" "$limit" "$programs/early" open=libmlx5.so.1 qps=4
held "dlopen of libmlx5.so" "$limit" "$programs/early" open=libmlx5.so qps=4
held "a plugin that is linked to libmlx5" "$limit" "$programs/early" "open=$programs/libmlx5_plugin.so" qps=4
held "dlopen of libibverbs alone" "$limit" "$programs/early" qps=4
held "libibverbs first, then libmlx5" "$limit" "$programs/early" open=libibverbs.so.1 open=libmlx5.so.1 qps=4
held "libmlx5 closed again" "$limit" "$programs/early" open=libmlx5.so.1 close qps=4
held "opened, closed, opened" "$limit" "$programs/early" open=libmlx5.so.1 close open=libmlx5.so qps=4
held "opened before and again after libibverbs" "$limit" "$programs/early" open=libmlx5.so.1 open=libibverbs.so.1 \
    open=libmlx5.so.1 qps=4
is "nothing is left in use" "$(usage_of qp)" 0

# --- the real library's symbols -----------------------------------------------------------------------
for library in libmlx5.so.1 libmlx5.so "$programs/libmlx5_plugin.so"; do
    is "symbols of ${library##*/} are the real one's, but for what creates objects" \
        "$("$programs/early" "open=$library" symbol=mlx5dv_open_device symbol=mlx5dv_init_obj@MLX5_1.0 \
            symbol=mlx5dv_init_obj@MLX5_1.2 symbol=mlx5dv_create_qp@MLX5_1.3 2>&1)" \
        "mlx5dv_open_device: $real
mlx5dv_init_obj: $real
mlx5dv_init_obj: $real
mlx5dv_create_qp: $real_dir/libibverbs/librdmaquota.so"
done
is "what creates objects is ours also after closing and opening again" \
    "$("$programs/early" open=libmlx5.so.1 close open=libmlx5.so.1 symbol=mlx5dv_devx_obj_create)" \
    "mlx5dv_devx_obj_create: $real_dir/libibverbs/librdmaquota.so"
run "$programs/early" open=libmlx5.so.1 symbol=mlx5dv_create_qp@MLX5_1.99
is "a symbol that the real one lacks stays missing" "$status" 1
has "libmlx5's own calls know their device" "$("$programs/mlx5_calls" mlx5_0 2> /dev/null)" "mlx5dv_is_supported 1"

# --- bad cases ------------------------------------------------------------------------------------------
install -m 4755 "$programs/verbs_objects_mlx5" setuid_objects
chmod 755 .
held "setuid" "rc: 2 of 4, then EDQUOT" setpriv --reuid=65534 --clear-groups ./setuid_objects -d mlx5_0 rc=4

# build_real NODE: in place of the real library one with a function in the version node NODE, as an upgrade may bring
build_real() {
    echo "$1 { global: upgraded; local: *; };" > upgrade.map
    echo 'int upgraded(void); int upgraded(void) { return 42; }' | gcc -x c - -shared -fPIC -Wl,-soname,libmlx5.so.1 \
        -Wl,--version-script=upgrade.map -o "$real_dir/libmlx5.so.1" || not_ok "build_real $1"
}
link=$(readlink "$real_dir/libmlx5.so.1")
rm "$real_dir/libmlx5.so.1"
build_real MLX5_1.60
echo 'int upgraded(void); int main(void) { return upgraded(); }' |
    gcc -x c - -x none "$real_dir/libmlx5.so.1" -o upgraded
run ./upgraded
is "a program that asks for a version node of an upgraded library runs" "$status" 42
is "it gets it through the shadow" "$(ldd ./upgraded | awk '$1 == "libmlx5.so.1" { print $3 }')" "$shadow"
build_real MLX5_2.0
run rdmaquota doctor
has "doctor tells of a node that the shadow lacks" "$out" "lacks the version node MLX5_2.0"
rm "$real_dir/libmlx5.so.1"
build_real MLX5_OFED
echo 'int upgraded(void); int main(void) { return upgraded(); }' |
    gcc -x c - -x none "$real_dir/libmlx5.so.1" -o vendors
run ./vendors
is "a program that asks for the node of MLNX_OFED's libmlx5 runs" "$status" 42
is "through the shadow, too" "$(ldd ./vendors | awk '$1 == "libmlx5.so.1" { print $3 }')" "$shadow"

# What the packages register, in place of Meson's lines: the shadow steps aside for a node that it does not know.
cp $conf kept
: > $conf
mkdir -p "$real_dir/rdmaquota/shadows"
cp "$shadow" "$real_dir/rdmaquota/shadows"
sed "s|@LIBRARIES@|$real_dir|" "$here/../../debian/adopt.in" > adopt
run sh adopt
is "the packages' shadow is there for nodes that it knows" "$(readlink "$real_dir/rdmaquota/shadow/libmlx5.so.1")" ../shadows/libmlx5.so.1
rm "$real_dir/libmlx5.so.1"
build_real MLX5_STRANGE
run sh adopt
has "for another it steps aside, and says so" "$log" "libmlx5.so.1 has the version node MLX5_STRANGE, which this version does not know"
echo 'int upgraded(void); int main(void) { return upgraded(); }' |
    gcc -x c - -x none "$real_dir/libmlx5.so.1" -o strange
run ./strange
is "so that a program that asks for it runs" "$status" 42
rm -r "$real_dir/rdmaquota"
cp kept $conf
ldconfig
rm "$real_dir/libmlx5.so.1"
run "$programs/verbs_objects_mlx5" -d mlx5_0 rc=1
is "a program that is linked to a missing library does not start" "$status" 127
has "and says which" "$log" "$real_dir/libmlx5.so.1: cannot open shared object file"
run rdmaquota doctor
has "doctor tells that the real library is missing" "$out" "problem  libmlx5.so.1: $real_dir/libmlx5.so.1 is missing"
held "the real library's link missing, not linked to it" "rc: 2 of 4, then EDQUOT" \
    "$programs/verbs_objects" -d mlx5_0 rc=4
ln -s "$link" "$real_dir/libmlx5.so.1"

# --- doctor ---------------------------------------------------------------------------------------------
run rdmaquota doctor
is "doctor finds no problem" "$status $(grep ^problem <<< "$out")" "0 "
for line in "ok       provider mlx5: adopted" "ok       provider rxe: adopted" "private ABI 34" \
    "ok       libmlx5.so.1: the loader gives programs $shadow" "ok       registration: " "ok       policy: " \
    "ok       policy file: " "ok       ledger: " "ok       devices: mlx5_0" "ok       rdma cgroup: " \
    "never are: statically linked programs"; do
    has "doctor: $line" "$out" "$line"
done
has "doctor --json" "$(rdmaquota doctor --json)" \
    '{"version":1,"verdict":"ok","findings":[{"level":"ok","subject":"libibverbs"'

# sick NAME LINE COMMAND...: COMMAND exits with 1 and has LINE
sick() {
    run "${@:3}"
    has "doctor: $1" "$out" "problem  $2"
    is "doctor: $1: status" "$status" 1
}
sick "another libmlx5 by LD_LIBRARY_PATH" \
    "libmlx5.so.1: not covered: the loader gives programs $real_dir/libmlx5.so.1" \
    env LD_LIBRARY_PATH="$real_dir" rdmaquota doctor
mv /etc/libibverbs.d/rdmaquota.driver .
sick "no registration" "registration: " rdmaquota doctor
mv rdmaquota.driver /etc/libibverbs.d/
echo 'driver broken' > /etc/libibverbs.d/broken.driver
echo 'int table;' | gcc -x c - -shared -fPIC -o "$real_dir/libibverbs/libbroken-rdmav34.so" ||
    not_ok "a provider without a table"
sick "a provider whose table is not found" \
    "provider broken: not adopted, its devices are not limited: 0 structures in " \
    rdmaquota doctor
held "the others are adopted beside it" "rc: 2 of 4, then EDQUOT" "$programs/verbs_objects_mlx5" -d mlx5_0 rc=4
has "a program for which libibverbs loads it can tell of it" \
    "$(RDMAQUOTA_LOG_LEVEL=info "$programs/verbs_objects" -d mlx5_0 rc=1 2>&1)" \
    "rdmaquota: provider broken is left alone and not limited: 0 structures in"
rm /etc/libibverbs.d/broken.driver "$real_dir/libibverbs/libbroken-rdmav34.so"
chmod 666 /run/rdmaquota/policy-5
sick "a policy that all may write" "policy: " rdmaquota doctor
chmod 644 /run/rdmaquota/policy-5

policy <<< 'version = 1'
start "$programs/verbs_objects_mlx5" -d mlx5_0 rc=3 cq=2 mr=2 wait
run rdmaquota doctor --pid $program
is "doctor --pid finds no problem" "$status $(grep ^problem <<< "$out")" "0 "
has "it tells the owner" "$out" "(mlx5_0): owned by $real, adopted"
has "the slot" "$out" "ok       owner slot: "
has "and the counts" "$out" "ledger/kernel: hca_handle 1/1, pd 1/1, cq 3/3, qp 3/3, mr 2/2, srq 0/0"
proceed
LD_LIBRARY_PATH=$real_dir start "$programs/verbs_objects_mlx5" -d mlx5_0 rc=3 wait
sick "a process that is not held" \
    "descriptor 3 (mlx5_0): not covered: owned by $real, which is not adopted" rdmaquota doctor --pid $program
has "its library" "$out" "problem  library: not covered: $real is loaded and not adopted"
has "it has no slot" "$out" "problem  owner slot: none"
proceed
# Another libmlx5, in a directory of its own.
own=/run/own-libmlx5
mkdir $own
cp "$real" $own/libmlx5.so.1
sick "an own libmlx5 by LD_LIBRARY_PATH" "libmlx5.so.1: not covered: the loader gives programs $own/libmlx5.so.1" \
    env LD_LIBRARY_PATH=$own rdmaquota doctor
# not_held NAME COMMAND...: its device is driven by the own libmlx5, which doctor tells
not_held() {
    start "${@:2}" wait
    has "$1: it runs" "$(cat running)" "3 of 3"
    sick "$1" "descriptor 3 (mlx5_0): not covered: owned by $own/libmlx5.so.1, which is not adopted" \
        rdmaquota doctor --pid "$program"
    has "$1: its library" "$out" "problem  library: not covered: $own/libmlx5.so.1 is loaded and not adopted"
    proceed
}
policy <<< 'version = 1
[tenant.default.mlx5_0]
qp = 2'
not_held "by LD_LIBRARY_PATH" env LD_LIBRARY_PATH=$own "$programs/verbs_objects_mlx5" -d mlx5_0 rc=3
not_held "by RUNPATH" "$programs/verbs_objects_runpath" -d mlx5_0 rc=3
has "by RUNPATH: that too" "$out" "program: has RUNPATH $own"
not_held "by a path" "$programs/early" open=$own/libmlx5.so.1 qps=3
held "the first of two copies" "$limit" "$programs/early" open=$own/libmlx5.so.1 "open=$shadow" qps=4
held "the second of two copies" "$limit" "$programs/early" open=libmlx5.so.1 open=$own/libmlx5.so.1 qps=4
rm -r $own
start sh -c 'exec 7<> /dev/infiniband/uverbs0; echo ready; read -r _'
sick "a descriptor without libibverbs" "descriptor 7 (mlx5_0): not covered: no context" rdmaquota doctor --pid $program
proceed
start "$programs/static_program"
sick "a statically linked program" "program: not covered: it is statically linked" rdmaquota doctor --pid $program
proceed
start "$programs/early" wait
run rdmaquota doctor --pid $program
is "a program without RDMA is fine" "$status" 0
proceed

# --- the other way round --------------------------------------------------------------------------------
cp $conf kept
rm $conf
ldconfig
sick "no shadow" "libmlx5.so.1: not covered: the loader gives programs" rdmaquota doctor
is "without the shadow, one linked to libmlx5 is not held" \
    "$("$programs/verbs_objects_mlx5" -d mlx5_0 rc=4)" "rc: 4 of 4"
cp kept $conf
ldconfig

# --- uninstalling -----------------------------------------------------------------------------------------
ninja -C "$1" uninstall > uninstalled || not_ok "uninstall" "$(tail -n 3 uninstalled)"
ldconfig
is "uninstalling leaves nothing of the shadows" \
    "$(ls -d "${shadow_dir%/shadow}" $conf 2> /dev/null; ldconfig -p | grep rdmaquota)" ""
is "a program that is linked to libmlx5 runs on" "$("$programs/verbs_objects_mlx5" -d mlx5_0 rc=4)" "rc: 4 of 4"

finish
