#!/bin/bash
# early_test.sh BUILD: programs that load libmlx5 before libibverbs reads any configuration, on a node that has only
# mlx5_0, where libibverbs then never reads it. Runs as root in the guest with --device mlx5sim, after an installation.
set -u
here=$(dirname "$0")
# shellcheck source=test/integration/tap.sh
. "$here/tap.sh"
# shellcheck source=test/integration/guest.sh
. "$here/guest.sh"
# shellcheck disable=SC2034 # for usage_of
device=mlx5_0
programs=$1/test/programs
real_dir=$(dirname "$(realpath "$(ldconfig -p | awk '$1 == "libibverbs.so.1" { print $NF; exit }')")")
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
is "and no function or object" "$(readelf --dyn-syms -W "$shadow" | awk '$7 != "UND" && $7 != "ABS" && $1 ~ /^[0-9]+:$/')" ""
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
is "nothing is left in use" "$(usage_of qp)" 0

# --- the real library's symbols -----------------------------------------------------------------------
for library in libmlx5.so.1 libmlx5.so "$programs/libmlx5_plugin.so"; do
    is "symbols of ${library##*/} are the real one's" \
        "$("$programs/early" "open=$library" symbol=mlx5dv_create_qp symbol=mlx5dv_init_obj@MLX5_1.0 symbol=mlx5dv_init_obj@MLX5_1.2 2>&1)" \
        "mlx5dv_create_qp: $real
mlx5dv_init_obj: $real
mlx5dv_init_obj: $real"
done
run "$programs/early" open=libmlx5.so.1 symbol=mlx5dv_create_qp@MLX5_1.99
is "a symbol that the real one lacks stays missing" "$status" 1
has "libmlx5's own calls know their device" "$("$programs/mlx5_calls" mlx5_0 2> /dev/null)" "mlx5dv_is_supported 1"

# --- the other way round --------------------------------------------------------------------------------
cp $conf kept
rm $conf
ldconfig
is "without the shadow, one linked to libmlx5 is not held" "$("$programs/verbs_objects_mlx5" -d mlx5_0 rc=4)" "rc: 4 of 4"
cp kept $conf
ldconfig

finish
