#!/bin/bash
# mutants.sh BUILD: breaks one rule of limits over many nodes after the other, and checks that the simulation catches it. Each mutant is the
# sources with one line changed; only the file that has it is compiled again. About five minutes of one core.
# The last line is 'N passed, N failed'.
set -u
repo=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
passed=0 failed=0
seeds=${RDMAQUOTA_MUTANT_SEEDS:-3000}

# caught NAME FILE SED [FILE SED]: the rule without which the mutant is
caught() {
    local name=$1 tree=$work/$1 objects=() sources=() file
    shift
    rm -rf "$tree"
    mkdir -p "$tree/tools" "$tree/test"
    cp -r "$repo/tools/cluster" "$tree/tools/cluster"
    mkdir -p "$tree/tools/common"
    cp -r "$repo/tools/common/cluster" "$tree/tools/common/cluster"
    cp -r "$repo/test/cluster" "$tree/test/cluster"
    while [ $# -gt 1 ]; do
        file=$1
        sed -i -E "$2" "$tree/$file"
        if cmp -s "$tree/$file" "$repo/$file"; then
            echo "not ok - $name: $file has no such line any more"
            failed=$((failed + 1))
            return
        fi
        case $file in
            *.cpp) sources+=("$file") ;;
            test/*) sources+=(test/cluster/cluster.cpp test/cluster/cluster_sim.cpp test/cluster/oracle.cpp) ;;
        esac
        shift 2
    done
    mapfile -t sources < <(printf '%s\n' "${sources[@]}" | sort -u)
    for file in "${sources[@]}"; do
        objects+=("$tree/${file//\//_}.o")
        if ! c++ -std=c++20 -O1 -w -DRDMAQUOTA_RUNTIME_DIR='""' -I"$tree" -I"$repo" -c -o "${objects[-1]}" "$tree/$file" 2> "$tree/log"; then
            echo "not ok - $name does not compile"
            sed 's/^/    # /' "$tree/log" | head -n 5
            failed=$((failed + 1))
            return
        fi
    done
    local others=() object
    for file in cluster cluster_sim etcd oracle; do
        [[ " ${sources[*]} " == *" test/cluster/$file.cpp "* ]] || others+=("$build/test/cluster/cluster_sim.p/$file.cpp.o")
    done
    for object in "$build"/tools/cluster/libcluster_logic.a.p/*.cpp.o "$build"/tools/common/libtools_common.a.p/cluster_ceilings.cpp.o; do
        file=${object##*/} file=${file#*_}
        [[ " ${sources[*]##*/} " == *" ${file%.o} "* ]] || others+=("$object")
    done
    c++ -o "$tree/sim" "${objects[@]}" "${others[@]}" "$build/tools/common/libtools_common.a" \
        "$build/shm/libshm.a" "$build/policy/libpolicy.a" 2> "$tree/log" || {
        echo "not ok - $name does not link"
        head -n 5 "$tree/log"
        failed=$((failed + 1))
        return
    }
    timeout 300 "$tree/sim" --seeds "$seeds" > "$tree/log" 2>&1
    local status=$? broken
    broken=$(sed -n -E 's/^not ok - seed ([0-9]+): (I[0-9]).*/\2, seed \1/p' "$tree/log" | head -n 1)
    if [ -n "$broken" ] || [ $status -gt 1 ]; then
        echo "ok - $name is caught (${broken:-status $status})"
        passed=$((passed + 1))
    else
        echo "not ok - $name is not caught"
        tail -n 2 "$tree/log" | sed 's/^/    # /'
        failed=$((failed + 1))
    fi
    rm -rf "$tree"
}

held=tools/cluster/core/held.cpp permit=tools/cluster/core/permit.cpp ceilings=tools/common/cluster/ceilings.cpp
coordinator=tools/cluster/coordinator/coordinator.cpp sessions=tools/cluster/coordinator/sessions.cpp node=test/cluster/node.hpp


caught RAISE_BEFORE_ACKNOWLEDGEMENT $held 's/: assigned->held;/: assigned->ceiling;/'
caught HELD_FALLS_UNACKNOWLEDGED $held 's/^(    return has_acknowledged\(node\)) && use/    return is_current(node) \&\& use/'
caught REPORT_COUNTED $permit 's/\{ceiling, std::max\(ceiling, row.held\)\}/{ceiling, row.use}/'
caught NO_FENCE_NO_TURN $coordinator 's/\{"turn", What::mod_revision, turn_revision_\}/{"epoch", What::mod_revision, epoch_revision_}/; s/transaction.compares = \{\{"leader", What::create_revision, leader_revision_\},$/transaction.compares = {{"epoch", What::mod_revision, epoch_revision_},/'
caught NO_TURN $coordinator 's/\{"turn", What::mod_revision, turn_revision_\}/{"epoch", What::mod_revision, epoch_revision_}/'
caught NO_ROOM_NEEDED $permit 's/return std::max\(as_it_is, row.held <= room \? std::min\(wanted, room\) : 0\);/return wanted;/'
caught RESTORED_BELIEVED $coordinator 's/if \(lead < epoch_.lead\)/if (false)/' $sessions 's/^    if \(report.epoch > epoch_.number\) return true;/    return false;/'
caught NO_SIGN_BY_NODES $sessions 's/^    if \(report.epoch > epoch_.number\) return true;/    return false;/'
caught NOT_LOWERED_AFTER_A_KILL $ceilings 's/^    return put_all\(\);/    acknowledged_ = record_.number;\n    return {};/'
caught GATES_READ_FIRST $node 's/^            if \(delivery != nullptr\)$/            auto early = keeper->report();\n            if (delivery != nullptr)/; s/^            return keeper->report\(\);/            auto late = keeper->report();\n            early.epoch = late.epoch, early.number = late.number;\n            for (std::size_t i = 0; i < late.pools.size(); ++i)\n                for (auto\& pool : early.pools)\n                    if (pool.id == late.pools[i].id) late.pools[i].bound = std::max(pool.use, places[keeper->record().ceilings[i].pool].in_force);\n            return late;/'
caught OTHER_BOOT_TAKEN $ceilings 's/\(delivery.boot != boot && !is_forgotten\)/false/'
caught NEW_BOOT_FREES_ALL $held 's/if \(!is_current\(node\)\) return bound_of\(use\);/if (!is_current(node)) return 0;/'
caught POOL_ADDED_AGAIN $held 's/if \(assigned == nullptr\) return has_acknowledged\(node\) \? bound_of\(use\) : unknown;/if (assigned == nullptr) return 0;/'
caught OLDER_TAKEN $ceilings 's/delivery.number <= number/delivery.number == number/'
caught OTHER_EPOCH_TAKEN $ceilings 's/if \(delivery.epoch != epoch \|\| /if (/'
caught CLONE_ADMITTED $sessions 's/if \(bound == report.hardware\) return \{\};/return {};/'
caught FORGOTTEN_RELEASES $ceilings 's/is_forgotten \? 0 : unlimited/unlimited/'

echo "$passed passed, $failed failed"
[ $failed = 0 ]
