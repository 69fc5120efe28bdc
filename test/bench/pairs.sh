#!/bin/bash
# pairs.sh BUILD: the instructions of creating and destroying an object on fake0, with rdmaquota and without, and with
# limits for all that it costs. The difference between many pairs and twice as many, so that nothing else counts. Several
# times with the objects elsewhere in memory, since receipts lie by address and some beside others. run.sh starts it
# under fake_device.sh and `rdmaquota run`. The variant "deep" is a tenant five levels down, with the same limits on each.
# Prints "pairs.KIND.VARIANT INSTRUCTIONS" lines, and of the first place "pairs_functions.KIND.FUNCTION INSTRUCTIONS" lines
# for rdmaquota's functions.
set -eu
programs=$1/test/bench
quota=$(mktemp -d)
trap 'rm -rf "$quota"' EXIT
far=$(dirname "$0")/far_limits.toml
"$1/tools/rdmaquota/rdmaquota" --dir "$quota/ours" reload "$far" >/dev/null
{
    sed '/^\[tenant/,$d' "$far"
    for tenant in a a/b a/b/c a/b/c/d a/b/c/d/e; do
        echo "[tenant.\"$tenant\".\"*\"]"
        sed '1,/^\[tenant/d' "$far"
    done
    printf '[tenant."a/b/c/d/e"]\nmatch = [{ user = "%s" }]\n' "$(id -un)"
} >"$quota/deep.toml"
"$1/tools/rdmaquota/rdmaquota" --dir "$quota/deep" reload "$quota/deep.toml" >/dev/null

here=$(dirname "$0")
run_variant() { # VARIANT COMMAND...
    local variant=$1
    shift
    if [ "$variant" = bare ]; then
        env -u RDMAQUOTA_DIR "RDMAV_DRIVERS=$programs/libfake" "$@"
    else
        env "RDMAQUOTA_DIR=$quota/$variant" "$@"
    fi
}
instructions() { # PAIRS KIND VARIANT BLOCKS
    run_variant "$3" "$here/instructions.sh" "$programs/bench_verbs_pairs" "$1" "$2" "$4"
}

for kind in pd qp mr_4k; do
    for variant in bare ours deep; do
        for blocks in 0 150 200 271 342 413 484 555; do
            few=$(instructions 800 $kind $variant $blocks)
            many=$(instructions 1600 $kind $variant $blocks)
            echo "pairs.$kind.$variant $(((many - few) / 800))"
        done
    done
    run_variant ours python3 -B "$here/functions.py" "pairs_functions.$kind" librdmaquota 800 \
        "$programs/bench_verbs_pairs" {} "$kind" 0
done
