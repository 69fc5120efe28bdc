#!/bin/bash
# Changes of limits that last: `set --persist` and `unset --persist`, live and in the policy file as one transaction. Needs no RDMA.
#
#   persist_test.sh BUILD_DIRECTORY
# shellcheck source=test/integration/policy_files.sh
. "$(dirname "$0")/policy_files.sh"

# in_force: puts a policy in force, the text from standard input
in_force() { policy; "$rdmaquota" reload policy.toml > /dev/null; }

# change WORDS...: output and messages of a change that is to be kept in the file
change() { "$rdmaquota" "$@" --persist --file policy.toml 2>&1; }

# limit TENANT DEVICE RESOURCE MEMBER: from `show --limits --json`
limit() {
    "$rdmaquota" show "$1" --limits --json | python3 -c "
import json, sys
found = [row['$4'] for row in json.load(sys.stdin)['tenants'][0]['limits'] if (row['scope'], row['device'], row['resource']) == ('tenant', '$2', '$3')]
print(found[0] if found else 'none')"
}

# --- several at once -------------------------------------------------------------------------------------------------

in_force <<< $'[tenant.default."*"]\nqp = 1000'
for round in 1 2 3 4 5 6 7 8; do
    for n in 1 2 3 4 5 6 7 8; do change set "d${round}_$n" qp=$((10 * round + n)) > "out.$n" & done
    wait
    cat out.? >> outputs
done
is "eight changes at once, eight times: each one says that it is saved" "$(grep -c '^saved in ' outputs)" 64
is "and all are in the file" "$(grep -Ec '^qp = [1-8][1-8]$' policy.toml)" 64
succeeds "which is right" "$rdmaquota" check policy.toml
is "and in force" "$(limit default d3_7 qp limit)" 37
"$rdmaquota" reload policy.toml > /dev/null
is "also after reload" "$(limit default d8_8 qp limit)" 88
is "no temporary file is left" "$(find . -maxdepth 1 -name '.policy.toml.*')" ""

# --- in percent ------------------------------------------------------------------------------------------------------

in_force <<< $'[tenant.default."*"]\nall = "25%"'
has "a percentage is set and saved" "$(change set d0 mr_bytes=50%)" "d0 mr_bytes: 25% -> 50% (tenant default); "
has "as it was written" "$(cat policy.toml)" $'[tenant.default."d0"]\nmr_bytes = "50%"'
is "and shown so" "$(limit default d0 mr_bytes percent)" 50.0
change set '*' qp=7 > /dev/null
change unset '*' qp > /dev/null
is "what is unset is what the file has for all" "$(limit default '*' qp percent)" 25.0
has "what stands there for all is not removed for one" "$(change unset '*' qp)" 'limits qp by all = "25%" only'

# --- both or neither -------------------------------------------------------------------------------------------------

in_force <<< $'[tenant.default."*"]\nqp = 1000'
cp policy.toml before.toml
rows=$(for n in $(seq 65); do echo "[tenant.default.d$n]"; echo 'qp = 1'; done)
in_force <<< $'[tenant.default."*"]\nqp = 1000\n'"$rows"
cp policy.toml before.toml
has "a limit that has no room in force is refused" "$(change set one_more qp=5)" "no room for limits of another device"
succeeds "and is not in the file" cmp before.toml policy.toml
in_force <<< $'[tenant.default."*"]\nqp = 1000'
mkdir conf.d && printf '[tenant.default.rxe2]\ncq = 9\n' > conf.d/50-more.toml
has "a limit that the file cannot have is refused" "$(change set rxe2 cq=8)" "cq for 'rxe2' is set here"
is "and is not in force" "$(limit default rxe2 cq limit)" none
rm -r conf.d

# --- taking back -----------------------------------------------------------------------------------------------------

in_force <<< $'[tenant.default."*"]\nqp = 1000\ncq = 7 # of all\n[tenant.physics."*"]\nqp = { limit = 400, guarantee = 100, soft = 300 }'
change set '*' qp=64 > /dev/null
"$rdmaquota" set '*' qp=10 > /dev/null
has "unset returns to what set --persist wrote" "$("$rdmaquota" unset '*' qp)" "qp: 10 -> 64"
has "unset --persist removes the limit" "$(change unset '*' qp)" "qp: 64 -> max"
lacks "from the file" "$(cat policy.toml)" "qp = 64"
has "and leaves the others" "$(cat policy.toml)" "cq = 7 # of all"
"$rdmaquota" reload policy.toml > /dev/null
is "it is not there after reload" "$(limit default '*' qp limit)" none
has "unset --persist of what the file does not have" "$(change unset '*' pd)" "pd: max -> max"
has "unset --persist of one part" "$(change unset physics '*' qp --soft)" "qp soft: 300 -> max"
has "leaves the other parts" "$(cat policy.toml)" "qp = { limit = 400, guarantee = 100 }"
has "the last parts" "$(change unset physics '*' qp --guarantee; change unset physics '*' qp)" "qp: 400 -> max"
lacks "go with their line" "$(sed -n '/physics/,$p' policy.toml)" "qp"

# --- guarantees ------------------------------------------------------------------------------------------------------

in_force <<< $'[tenant.physics."*"]\nqp = { limit = 400, guarantee = 100, soft = 300 }'
has "a guarantee above the limit is refused" "$("$rdmaquota" set physics '*' qp=500 --guarantee 2>&1)" "guarantee of 500 qp is above the limit of 400"
is "and is not in force" "$(limit physics '*' qp guarantee)" 100
has "a guarantee within the limit" "$(change set physics '*' qp=200 --guarantee)" "guarantee: 100 -> 200"
has "is in the file beside limit and soft limit" "$(cat policy.toml)" "{ limit = 400, guarantee = 200, soft = 300 }"
cp policy.toml before.toml
has "a limit below the guarantee is refused" "$(change set physics '*' qp=150)" "below the guarantee of 200"
has "also without --persist, with the command that helps" "$("$rdmaquota" set physics '*' qp=150 2>&1)" \
    "rdmaquota set physics '*' qp=150 --guarantee"
succeeds "and changes neither the file" cmp before.toml policy.toml
is "nor what is in force" "$(limit physics '*' qp limit)" 400

# --- what the change makes impossible

in_force <<< $'[node."*"]\nqp = 100\n[tenant.physics."*"]\nqp = { limit = 80, guarantee = 40 }\n[tenant.bio."*"]\nqp = 60'
has "a guarantee that leaves others less than their limits is warned of" "$("$rdmaquota" set physics '*' qp=50 --guarantee 2>&1)" \
    "warning: the limit of 60 qp of tenant 'bio' on * can never be reached: [node] above it has 100, of which 50 are guaranteed to others"
is "once" "$("$rdmaquota" set bio '*' cq=9 2>&1 | grep -c warning)" 0
has "and so is a limit that breaks a guarantee" "$("$rdmaquota" set node '*' qp=45 2>&1)" "[node] may use 45 qp on *, less than the 50 that are guaranteed"

# --- a table that is emptied

in_force <<< $'[tenant."user/{user}"]\nmatch = [{ user = "*" }]\n[tenant."user/{user}"."*"]\nqp = 9'
cp policy.toml before.toml
change set user/bin '*' qp=20 > /dev/null
change unset user/bin '*' qp > /dev/null
succeeds "set and unset leave the file as it was" cmp before.toml policy.toml

# --- a forgotten device ----------------------------------------------------------------------------------------------

in_force <<< $'[node."*"]\nqp = 1000\n[tenant.nlp."*"]\nqp = 100\n[tenant.vision."*"]\nqp = 100'
has "a tenant in place of the device is refused" "$("$rdmaquota" set nlp qp=4 2>&1)" "did you mean: rdmaquota set nlp '*' qp=4"
is "and no device has that name" "$("$rdmaquota" show default --limits | grep -c nlp)" 0
change set nlpp qp=4 > /dev/null
change unset nlpp qp > /dev/null
is "a device that nobody names any more goes with unset" "$(for t in default nlp vision; do "$rdmaquota" show $t --limits --json; done | grep -c nlpp)" 0
change set nlpp qp=4 > /dev/null
in_force <<< $'[tenant.nlp."*"]\nqp = 100'
"$rdmaquota" reload policy.toml > out
is "or with a reload" "$(for t in default nlp; do "$rdmaquota" show $t --limits --json; done | grep -c nlpp)" 0

finish
