#!/bin/bash
# pairs.sh BUILD: the instructions of creating and destroying an object on fake0, with rdmaquota and without, and with
# limits for all that it costs. The difference between many pairs and twice as many, so that nothing else counts. run.sh
# starts it under fake_device.sh and `rdmaquota run`. Prints "pairs.KIND.VARIANT INSTRUCTIONS" lines.
set -eu
programs=$1/test/bench
quota=$(mktemp -d)
trap 'rm -rf "$quota"' EXIT
"$1/tools/rdmaquota/rdmaquota" --dir "$quota" reload "$(dirname "$0")/far_limits.toml" >/dev/null

instructions() { # PAIRS KIND VARIANT
    local run=(env "RDMAQUOTA_DIR=$quota")
    [ "$3" = ours ] || run=(env -u RDMAQUOTA_DIR "RDMAV_DRIVERS=$programs/libfake")
    "${run[@]}" "$(dirname "$0")/instructions.sh" "$programs/bench_verbs_pairs" "$1" "$2"
}

for kind in pd qp mr_4k; do
    for variant in bare ours; do
        few=$(instructions 800 $kind $variant)
        many=$(instructions 1600 $kind $variant)
        echo "pairs.$kind.$variant $(((many - few) / 800))"
    done
done
