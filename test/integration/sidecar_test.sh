#!/bin/bash
# sidecar_test.sh BUILD: rdmaquotad's view of the kernel, and what it does about what it sees. Runs as root in the
# guest after an installation. What follows '#' on a line of its own is measured, not judged.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh"
# shellcheck source=test/integration/sidecar.sh
. "$here/sidecar.sh"
make_group

# --- bypass ----------------------------------------------------------------------------------------
policy <<< 'version = 1'
start_sidecar
bypass() { # NAME RESOURCE PROGRAM...: it is told, with what it has
    local name=$1 resource=$2
    shift 2
    : > sidecar.log
    start "$@"
    if await "$resource"; then
        has "$name is reported" "$line" "bypass: pid $program "
        echo "# reported after $took_ms ms"
    fi
    proceed
    await "bypass_ended: pid $program " && ok "and so is its end"
}
bypass "a program that calls ioctl itself" "pd: 5 in the kernel, 0 charged" "$programs/raw_uverbs" ioctl 5
bypass "a program that calls write itself" "pd: 7 in the kernel, 0 charged" "$programs/raw_uverbs" write 7
start "$programs/raw_uverbs" ioctl 4
await "pd: 4 in the kernel, 0 charged"
has "show lists it" "$(rdmaquota show | tail -n 1 | tr -s ' ')" \
    "$program root default raw_uverbs rxe0 hca_object 4, hca_handle 1, pd 4"
is "and show --json" "$(rdmaquota show --json | python3 -c '
import json, sys
(one,) = json.load(sys.stdin)["tenants"][0]["bypasses"]
print(one["pid"], one["comm"], one["device"], one["resources"]["pd"])')" \
    "$program raw_uverbs rxe0 {'kernel': 4, 'ledger': 0}"
has "and top counts it" "$( (sleep 1; printf q) | script -qec "rdmaquota top" /dev/null)" "  1 around the quota"
proceed
await "bypass_ended: pid $program "
has "until it ends" "$(rdmaquota show --json)" '"bypasses":[]'
policy <<< $'version = 1\n[tenant.blue]\nmatch = [{ cgroup = "/sidecar" }]'
: > sidecar.log
start in_group "$programs/raw_uverbs" ioctl 6
await "pd: 6 in the kernel, 0 charged"
is "each tenant has its own in show --json" "$(rdmaquota show --json | python3 -c '
import json, sys
print(*[(tenant["name"], len(tenant["bypasses"])) for tenant in json.load(sys.stdin)["tenants"]])')" "('default', 0) ('blue', 1)"
proceed
await "bypass_ended: pid $program "
policy <<< 'version = 1'
bypass "a statically linked verbs program" "qp: 3 in the kernel, 0 charged" \
    "$programs/verbs_objects_static" rc=3 mr=2:8192 wait

: > sidecar.log
start "$programs/verbs_objects" rc=3 mr=2:8192 srq=1 ah=1 mw=1 wait
looks_pass 4
is "of a program that goes through the quota nothing is told" "$(cat sidecar.log)" ""
proceed
start "$programs/forker"
looks_pass 4
is "nor of one that forks" "$(cat sidecar.log)" ""
kill -9 "$(sed -n 's/^child //p' running)"
proceed

# Of what was there before it, the kernel tells by which thread it was made, and nothing of threads that have ended.
stop_sidecar
for steps in thread:rc=3,mr=2,wait "thread:rc=3,mr=2 wait"; do
    # shellcheck disable=SC2086 # one word each
    start "$programs/verbs_objects" $steps
    start_sidecar
    looks_pass 7
    is "nor of one with threads that was there before ($steps)" "$(grep -e bypass -e leak sidecar.log)" ""
    proceed
    stop_sidecar
done
start "$programs/forker" late
start_sidecar
echo >&9
eventually "the child is there" contains running ready
looks_pass 7
is "nor of one that was there before and forks" "$(grep -e bypass -e leak sidecar.log)" ""
kill -9 "$(sed -n 's/^child //p' running)"
looks_pass 7
is "nor when the child has ended" "$(grep -e bypass -e leak sidecar.log)" ""
proceed

# --- leaks -----------------------------------------------------------------------------------------
: > sidecar.log
start "$programs/verbs_objects" pd=5 rc=2 unseen=3 wait
await "leak: pid $program " && has "who was charged for more than it has is told" "$line" \
    "rxe0, hca_object: 6 in the kernel, 9 charged, pd: 3 in the kernel, 6 charged"
proceed
await "leak_ended: pid $program " && ok "and so is its end"
: > sidecar.log
start env RDMAQUOTA_DIR=/run/rdmaquota "$programs/../integration/ledger_user" rxe0 qp=3 mr_bytes=1MiB
await "leak: pid $program " && has "also of one that the kernel knows nothing of" "$line" \
    "qp: 0 in the kernel, 3 charged"
proceed
await "leak_ended: pid $program "

# --- rules by what the device tells ------------------------------------------------------------------
most=$(ibv_devinfo -v | sed -n 's/^\s*max_ah:\s*//p')
policy <<< 'version = 1
[tenant.default.rxe0]
ah = 20000
[[dynamic]]
device = "rxe0"
watch = "ah"
of = "device"
above = 2
below = 1
factor = 50
floor = 100'
: > sidecar.log
start "$programs/verbs_objects" ah=$((most / 50 + 1)) wait
await "tightened: " && has "a rule follows what the device has at most" "$line" \
    "ah of tenant default on rxe0: 20000 -> 10000; [[dynamic]] rule 1: ah at 2 % of $most"
proceed
await "restored: " && has "until it is less" "$line" "ah of tenant default on rxe0: 10000 -> 20000"

# --- programs that are let alone, and those that are seen --------------------------------------------
policy <<< 'version = 1'
: > sidecar.log
for _ in 1 2 3 4 5 6 7 8; do sleep 0.4 | "$programs/raw_uverbs" write 3 > /dev/null; done
looks_pass
told=$(grep -c 'bypass: pid' sidecar.log)
is "who goes around the quota for a moment is seen ($told of 8)" "$((told >= 4))" 1
stop_sidecar
start "$programs/daemonized"
start_sidecar
echo >&9
looks_pass 4
exec 9>&-
looks_pass
is "one that was left by its parent before the sidecar came is let alone" "$(grep bypass sidecar.log)" ""
: > sidecar.log
# shellcheck disable=SC2016 # expanded by the inner shell
start unshare --pid --fork --kill-child sh -c '"$0"; exec sleep infinity < /dev/null 9>&-' "$programs/daemonized"
echo >&9
looks_pass 4
exec 9>&-
looks_pass
is "and so is one whose pids and parent are of another namespace" "$(grep bypass sidecar.log)" ""
kill -9 "$program"
wait "$program" 2> /dev/null

# --- policies of before -------------------------------------------------------------------------------
: > sidecar.log
for word in charge limit kill; do
    printf 'version = 1\n[tenant.default]\nbypass = "%s"\n' $word > old.toml
    has "bypass = \"$word\" is read with a warning" "$(rdmaquota reload old.toml 2>&1)" \
        "old.toml:3:10: bypass = \"$word\" is no longer possible: a bypass is reported"
    has "check says so too" "$(rdmaquota check old.toml 2>&1)" "no longer possible"
done
start "$programs/raw_uverbs" ioctl 5
await "bypass: pid $program " && ok "and reports"
looks_pass
succeeds "nothing more" kill -0 "$program"
is "also in the ledger" "$(usage_of pd)" 0
proceed

# --- backstop --------------------------------------------------------------------------------------
policy <<< 'version = 1
[tenant.default]
backstop = "/sidecar"
[tenant.default."*"]
hca_handle = 3
hca_object = 20'
bound_is "the backstop has the tenant's limits" "rxe0 hca_handle=3 hca_object=20"
rdmaquota set rxe0 hca_object=30 > /dev/null
bound_is "and follows them" "rxe0 hca_handle=3 hca_object=30"
kill -9 "$sidecar"
wait "$sidecar" 2> /dev/null
start_sidecar
stop_sidecar
is "an orderly end puts back what was found, also by the sidecar before" "$(bound)" "rxe0 hca_handle=max hca_object=max"

# --- the page --------------------------------------------------------------------------------------
policy <<< $'version = 1\n[sidecar]\nweb_port = 9838'
start_sidecar
on_page() { # what it is told of the kernel, a line each
    python3 - "$(rdmaquota web)" << 'END'
import http.client, json, sys, urllib.parse
address = urllib.parse.urlsplit(sys.argv[1])
def get(path, **headers):
    connection = http.client.HTTPConnection(address.netloc)
    connection.request("GET", path, headers=headers)
    return connection.getresponse()
entry = get(f"/?{address.query}")
place = entry.headers["Location"].partition("=")[2]
state = json.load(get(f"/data/{place}/state", Cookie=entry.headers["Set-Cookie"].partition(";")[0]))
print("devices", *state["node"]["devices"])
print("qp of rxe0 at most", *[most for device, resource, most in state["capacity"] if (device, resource) == ("rxe0", "qp")])
for bypass in state["bypasses"]:
    print("bypass", bypass["pid"], bypass["tenant"], bypass["resources"]["pd"]["kernel"])
for tenant, device, resource, created, destroyed in state["churn"]:
    print("churn", tenant, device, resource, created > 0 and destroyed > 0)
for finding in state["node"]["findings"] or []:
    print("doctor", finding["subject"], finding["text"])
END
}
start "$programs/raw_uverbs" ioctl 5
"$programs/churn" 5 < forever > /dev/null 9>&- &
churning=$!
await "bypass: pid $program "
told() { seen=$(on_page) && [[ $seen == *churn*doctor* ]] || { echo "$seen"; return 1; }; }
eventually "the page is told of churn and of what doctor finds" told
has "the page is told of the node's devices" "$seen" "devices rxe0"
has "and what they can have" "$seen" "qp of rxe0 at most $(ibv_devinfo -v -d rxe0 | awk '/max_qp:/ { print $2 }')"
has "of who goes around the quota" "$seen" "bypass $program default 5"
has "of churn" "$seen" "churn default rxe0 qp True"
has "and of what doctor finds" "$seen" "doctor provider rxe adopted"
kill "$churning"
proceed
stop_sidecar

# --- a pid namespace of its own ----------------------------------------------------------------------
policy <<< 'version = 1'
: > sidecar.log
start "$programs/raw_uverbs" ioctl 5
# shellcheck disable=SC2016 # expanded by the inner shell
unshare --pid --fork --kill-child --mount-proc bash -c 'rdmaquotad 2>> sidecar.log &
    "$0" ioctl 6 < forever > inside
    wait' "$programs/raw_uverbs" 9>&- &
namespace=$!
await "bypass: "
looks_pass 4
has "in a pid namespace of its own it does without the program" "$(grep -m 1 'not seen' sidecar.log)" \
    "the node's pid namespace, and this one has its own: only what netlink lists is known"
has "it reports those in there" "$(grep -m 1 'bypass: ' sidecar.log)" "pd: 6 in the kernel, 0 charged"
is "and knows nothing of others" "$(grep -c 'bypass: ' sidecar.log)" 1
kill -9 "$namespace"
wait "$namespace" 2> /dev/null
proceed

# --- a crowd -----------------------------------------------------------------------------------------
# Each has a device open, and none a slot: the mappings of all are looked at.
start_sidecar
crowd=()
for _ in {1..400}; do
    "$programs/raw_uverbs" ioctl 1 < forever >> crowd.log 9>&- &
    crowd+=($!)
done
everyone_waits() { [ "$(grep -c waiting crowd.log)" = 400 ]; }
eventually "400 processes have a device open" everyone_waits
looks_pass 3
answers=0
for _ in {1..10}; do timeout 30 "$programs/ask" status > /dev/null && answers=$((answers + 1)); done
is "beside 400 processes that have a device open the sidecar answers" "$answers" 10
kill -9 "${crowd[@]}"
stop_sidecar

finish
