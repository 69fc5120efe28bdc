#!/bin/bash
# pyverbs_test.sh BUILD DEVICE: rdma-core's own pyverbs tests have the same outcome, test by test, with rdmaquota
# as without: all of them on rxe0, those of the control path on mlx5_0. Runs as root in the guest after an installation.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh" "$1" "$2"
chosen=() least=60 used=(hca_handle pd cq qp mr srq mw ah)
if [ "$device" = mlx5_0 ]; then
    # Those that send nothing, since mlx5sim has no data path, where a test waits in vain. Raw QPs are asked for with
    # attributes by chance that it seldom has.
    chosen=(tests.test_{device,addr,cq,pd,fork,mlx5_var,mlx5_pp,mlx5_uar,mlx5_query_port}
        tests.test_qp.QPTest.test_{create_{rc,uc,ud}_qp{,_ex}_{no,with}_attr,query_{rc,uc,ud}_qp}
        tests.test_qp.QPTest.test_{query_data_in_order,modify_ud_qp}
        tests.test_mr.{MRTest.test_reg_mr_bad_flags,MWTest.test_reg_mw_wrong_type}
        tests.test_mr.DeviceMemoryAPITest.test_{create_dm_mr,dm_bad_access,dm_bad_registration}
        tests.test_mlx5_sched.Mlx5SchedTest.test_create_sched_tree)
    least=40 used=(hca_handle pd cq qp mr ah dm)
fi
shipped=/usr/share/doc/rdma-core/tests
if [ ! -e $shipped/__init__.py ]; then
    echo "SKIP: no $shipped (package python3-pyverbs, with its documentation)" >&2
    exit 77
fi
cp -r $shipped tests && gunzip tests/*.gz

# Every resource has a limit, so that each charge is a compared one, and none is ever reached.
{
    echo 'version = 1'
    for row in process tenant.default; do
        echo "[$row.\"*\"]"
        for name in hca_handle hca_object pd mr mw cq cqe qp send_wr recv_wr srq srq_wr ah xrcd wq rwq_ind flow \
            counters dm; do echo "$name = 1000000000"; done
        printf 'mr_bytes = "100GiB"\ndm_bytes = "100GiB"\n'
    done
} > generous.toml
rdmaquota reload generous.toml > /dev/null || not_ok "the generous policy" "$(rdmaquota reload generous.toml 2>&1)"

# outcomes FILE [NAME...]: of those named, else of those chosen
outcomes() {
    local names=("${@:2}")
    [ $# -gt 1 ] || names=(${chosen+"${chosen[@]}"})
    timeout 240 /usr/bin/python3 "$here/pyverbs_outcomes.py" "$work/tests" "$device" "$1" \
        ${names+"${names[@]}"} > "$1.log" 2>&1
    local status=$?
    [ $status = 0 ] || echo "the run itself: status $status" >> "$1"
}
# pyverbs also loads libmlx5 and its like: `bare` makes them the real ones, since their shadows bring the provider
# along.

outcomes with
peaks=$(rdmaquota show --json)
bare outcomes without

# A test whose outcome differs is tried again both ways: some of them depend on the time that they take.
differing() { diff <(sort with) <(sort without) | sed -n 's/^[<>] \(tests[^\t]*\)\t.*/\1/p' | sort -u; }
for _ in 1 2; do
    mapfile -t names < <(differing)
    [ ${#names[@]} -gt 0 ] || break
    outcomes again "${names[@]}"
    bare outcomes again_without "${names[@]}"
    for run in with without; do
        again=again${run#with}
        again=${again/out/_without}
        grep -v -F -f <(printf '%s\t\n' "${names[@]}") $run > kept
        cat kept "$again" > $run
    done
    echo "# tried again: ${names[*]}"
done

count() { grep -c "	$2\$" "$1"; }
echo "# with: $(count with pass) pass, $(count with skip) skip, $(count with fail) fail, $(count with error) error"
is "the tests have the same outcomes with rdmaquota as without" "$(diff <(sort with) <(sort without))" ""
is "more than $least of them pass" "$(($(count with pass) > least))" 1
is "rdmaquota counted their objects, and nothing is left" "$(python3 -c '
import json, sys
device = json.loads(sys.argv[1])["tenants"][0]["devices"][sys.argv[2]]
used = [name for name in sys.argv[3:] if not device[name]["peak"]]
left = {name: cell["usage"] for name, cell in device.items() if cell["usage"]}
print("no peak:", used, "left:", left)' "$peaks" "$device" "${used[@]}")" "no peak: [] left: {}"
finish
