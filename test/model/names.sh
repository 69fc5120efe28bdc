#!/bin/bash
# names.sh: fails when the code's failpoint("…") and the model's AT(…) differ. The model names the
# failpoints that it leaves out on a line 'Failpoints left out: …' in ledger.pml.
set -u
here=$(cd "$(dirname "$0")" && pwd)

in_code() { sed -n 's/.*[^a-z_]failpoint("\([a-z_]*\)").*/\1/p' "$here"/../../shm/*.cpp "$here"/../../shm/ledger/*.[ch]pp; }
in_model() { sed -n -E 's/^ *AT\(([a-z_]+).*/\1/p' "$here/steps.pml"; }
left_out() { sed -n 's|^//.*Failpoints left out: \(.*\)\.$|\1|p' "$here/ledger.pml" | tr -d , | tr ' ' '\n'; }

code=$(in_code | sort -u)
[ -n "$code" ] || { echo "no failpoint(\"…\") was found in shm/"; exit 1; }
diff --label "the code" --label "the model" -U 0 <(echo "$code") <({ in_model; left_out; } | sort -u)
