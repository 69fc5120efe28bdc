#!/bin/bash
# names.sh: whether the code's failpoint("…") and the model's AT(…) are the same names. The model says which
# steps of the code it leaves out, on a line 'Steps left out: …' in ledger.pml.
set -u
here=$(cd "$(dirname "$0")" && pwd)

in_code() { sed -n 's/.*[^a-z_]failpoint("\([a-z_]*\)").*/\1/p' "$here"/../../shm/*.cpp "$here"/../../shm/ledger/*.cpp; }
in_model() { sed -n -E 's/^ *AT\(([a-z_]+).*/\1/p' "$here/steps.pml"; }
left_out() { sed -n 's|^//.*Steps left out: \(.*\)\.$|\1|p' "$here/ledger.pml" | tr -d , | tr ' ' '\n'; }

code=$(in_code | sort -u)
[ -n "$code" ] || { echo "no failpoint(\"…\") was found in shm/"; exit 1; }
diff --label "the code" --label "the model" -U 0 <(echo "$code") <({ in_model; left_out; } | sort -u)
