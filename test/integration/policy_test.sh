#!/bin/bash
# The policy file: who may write it, whom a match can name, the installed sample, what check and reload say of it. Needs no RDMA;
# what must be root's is left out otherwise.
#
#   policy_test.sh BUILD_DIRECTORY
# shellcheck source=test/integration/policy_files.sh
. "$(dirname "$0")/policy_files.sh"

reload() { "$rdmaquota" reload policy.toml 2>&1; }

# --- who may write it ------------------------------------------------------------------------------------------------

policy <<< $'[tenant.default."*"]\nqp = 10'
reload > out
for mode in 0666 0664 0622; do
    chmod $mode policy.toml
    has "a policy of mode $mode is refused" "$(reload)" "others may write it (mode $mode)"
done
has "check says so" "$("$rdmaquota" check policy.toml 2>&1)" "others may write it"
has "set --persist does not change it" "$("$rdmaquota" set '*' qp=1 --persist --file policy.toml 2>&1)" "others may write it"
chmod 0644 policy.toml
has "one of mode 0644 is put in force" "$(reload)" "is in force"
mkdir conf.d && printf '[tenant.default."*"]\ncq = 9\n' > conf.d/50-more.toml
chmod 0666 conf.d/50-more.toml
has "a file of conf.d that others may write is refused" "$(reload)" "conf.d/50-more.toml: others may write it"
chmod 0644 conf.d/50-more.toml
chmod 0777 conf.d
has "so is a conf.d" "$(reload)" "conf.d: others may write it"
chmod 0755 conf.d
has "one that only its owner may write is merged" "$(reload)" "is in force"
chmod 0777 .
has "a directory in which others can replace the policy is refused" "$(reload)" "others may write it (mode 0777)"
chmod 0700 .
if [ "$(id -u)" = 0 ]; then
    chown 12345 policy.toml
    has "a user's policy is refused" "$(reload)" "belongs to user 12345"
    chown 0 policy.toml
    chown 12345 conf.d/50-more.toml
    has "and a user's file in conf.d" "$(reload)" "belongs to user 12345"
fi
rm -r conf.d

# --- every user ------------------------------------------------------------------------------------------------------

policy <<< $'[tenant."user/{user}"]\nmatch = [{ user = "*" }]\n[tenant."user/{user}"."*"]\nqp = 64'
is "a template for every user is right" "$("$rdmaquota" check policy.toml 2>&1 | head -n 1)" "policy.toml: ok"
has "and matches a user" "$("$rdmaquota" check policy.toml --as nobody 2>&1)" "tenant user/nobody, match 1 of template user/{user}"
reload > out
has "each user has a tenant of its own" "$("$rdmaquota" show user/nobody --limits)" "qp"
is "all with the same limits have one list" "$("$rdmaquota" show --limits | grep -c '^tenant user/')" 1
has "which names them" "$("$rdmaquota" show --limits | grep -A99 '^the same: ')" "user/nobody"
policy <<< $'[tenant.everyone]\nmatch = [{ user = "*" }]\n[tenant.everyone."*"]\nqp = 64'
reload > out
has "one tenant for every user" "$("$rdmaquota" check policy.toml --as nobody)" "tenant everyone, match 1"
policy <<< $'[tenant."user/{user}"]\nmatch = [{ user = "{user}" }]'
has "a user of braces is refused" "$("$rdmaquota" check policy.toml 2>&1)" '"*" for every user'
policy <<< $'[tenant.first]\nmatch = [{ user = "*" }]\n[tenant.later]\nmatch = [{ group = "root" }]'
has "an entry behind one for every user never decides" "$("$rdmaquota" check policy.toml 2>&1)" "never decides"

# --- rates -----------------------------------------------------------------------------------------------------------

policy <<< $'[tenant.a]\nmatch = [{ user = "*" }]\nmax_delay = "500ms"\n[tenant.a."*"]\ncommands_per_s = { limit = 2000, burst = 4000 }'
"$rdmaquota" check policy.toml > out 2>&1
has "check has a rate" "$(cat out)" "commands_per_s 2000"
has "with its burst" "$(cat out)" "burst commands_per_s 4000"
has "and how long it delays" "$(cat out)" "rates delay a call by up to 500 ms"
policy <<< $'[tenant.default."*"]\ncommands_per_s = "25%"'
has "a rate in percent is refused" "$("$rdmaquota" check policy.toml 2>&1)" "commands_per_s"

# --- what a policy names ---------------------------------------------------------------------------------------------

policy <<< $'[tenant.a]\nmatch = [{ user = "no-such-user" }, { cgroup = "/sys/fs/cgroup/x.slice", members = ["@no-such-group"] }]'
said=$("$rdmaquota" check policy.toml 2>&1 > out)
has "check warns of a user that is not known" "$said" "tenant a: there is no user no-such-user yet"
has "of a group" "$said" "there is no group @no-such-group yet"
has "and of a cgroup's path with the mount in it" "$said" "no cgroup's path begins with /sys/fs/cgroup"
is "reload warns of the same" "$("$rdmaquota" reload policy.toml 2>&1 > out)" "$said"
policy <<< $'[tenant.a]\nmatch = [{ cgroup = "/x.slice", members = ["nobody"] }]'
has "check --as says that an entry asks for the cgroup" "$("$rdmaquota" check policy.toml --as nobody)" "add --cgroup PATH"

# --- tenants of templates --------------------------------------------------------------------------------------------

user=nobody key="user/#$(id -u nobody)"
template=$'[tenant."user/{user}"]\nmatch = [{ user = "*" }]\ndeny_errno = "EAGAIN"\n[tenant."user/{user}"."*"]\nqp = 64\ncq = 9\n'
policy <<< "$template"
reload > out
lacks "without a table of its own, a user has the template's limit" "$("$rdmaquota" show user/$user --json --limits)" '"limit":7'
has "a limit of a template's tenant can be saved" "$("$rdmaquota" set user/$user '*' qp=7 --persist --file policy.toml 2>&1)" "qp: 64 -> 7"
has "in a table of its name" "$(cat policy.toml)" '[tenant."user/nobody"."*"]'
has "which check names" "$("$rdmaquota" check policy.toml 2>&1)" "overrides its template"
reload > out
is "and there is one tenant of that name" "$("$rdmaquota" tenant list | grep -c "^user/$user ")" 1
has "which is the override" "$("$rdmaquota" tenant list)" "override"
limits=$("$rdmaquota" show user/$user --limits)
has "a reload keeps the limit" "$limits" " 7 "
has "and the template's other limits" "$limits" " 9 "
is "check --as leads there" "$("$rdmaquota" check policy.toml --as $user)" \
    "user $user: tenant user/$user, match 1 of template user/{user}, every user"
has "the tenant is the one that its user had before" "$(ls quota/tenants)" "user+#$(id -u nobody)"
"$rdmaquota" set 'user/{user}' '*' qp=50 > out 2>&1
has "set for the template does not change it" "$("$rdmaquota" show user/$user --limits)" " 7 "
"$rdmaquota" unset user/$user '*' qp --persist --file policy.toml > out 2>&1
has "unset --persist brings the template's limit back" "$("$rdmaquota" show user/$user --limits)" " 64 "
reload > out
has "also after a reload" "$("$rdmaquota" show user/$user --limits)" " 64 "

policy <<< "$template"$'[tenant."user/nobody"]\nmatch = [{ group = "root" }]'
has "a table of that name with match is refused" "$("$rdmaquota" check policy.toml 2>&1)" \
    "named like a tenant of the template 'user/{user}'; remove its match"
policy <<< "$template"$'[tenant."user/nosuchuser"."*"]\nqp = 3'
has "an override for a user who is not there is told" "$(reload)" "tenant user/nosuchuser: there is no such user"
lacks "and makes no tenant" "$("$rdmaquota" tenant list)" nosuchuser

policy <<< $'[tenant."job/{job}"]\nmatch = [{ cgroup = "/job/{job}", members = ["*"] }]\n[tenant."job/{job}"."*"]\nqp = 64\ncq = 9\n[tenant."job/7"."*"]\nqp = 7'
reload > out
limits=$("$rdmaquota" show job/7 --limits)
has "a table overrides a tenant that a cgroup names" "$limits" " 7 "
has "in the limits that it names" "$limits" " 9 "
has "and processes of that cgroup are in it" "$("$rdmaquota" check policy.toml --cgroup /job/7)" "tenant job/7, match 1 of template job/{job}"

# --- a template's limits and those of its tenants -----------------------------------------------------------------------

change() { "$rdmaquota" "$@" --file policy.toml > out 2>&1 || cat out; }
if [ "$(id -u)" = 0 ]; then
    policy <<< "$template"
    reload > out
    change set user/nobody '*' qp=3 --persist
    "$rdmaquota" set 'user/{user}' '*' qp=25 > out 2>&1
    has "a limit that was saved for one user stays when the template's is set" "$("$rdmaquota" show user/nobody --limits)" " 3 "
    has "which is told" "$(cat out)" "tenant user/nobody has a limit of its own and keeps it"
    "$rdmaquota" unset 'user/{user}' '*' qp > out 2>&1
    has "and when it is unset" "$("$rdmaquota" show user/nobody --limits)" " 3 "

    policy <<< "$template"$'[tenant."user/games"."*"]\ncq = 9'
    reload > out
    change set 'user/{user}' '*' qp=20 --persist
    has "what a table of its own does not say follows the template" "$("$rdmaquota" show user/games --limits)" " 20 "

    policy <<< $'[tenant."job/{job}"]\nmatch = [{ cgroup = "/job/{job}", members = ["*"] }]\n[tenant."job/{job}"."*"]\nqp = 200\n[tenant."job/1"."*"]\ncq = 1'
    reload > out
    "$rdmaquota" set 'job/{job}' '*' qp=900 > out
    has "a tenant has what is set for its template" "$("$rdmaquota" show job/1 --limits)" " 900 "
    "$rdmaquota" unset 'job/{job}' '*' qp > out
    has "until it is unset" "$("$rdmaquota" show job/1 --limits)" " 200 "

    policy <<< $'[process."*"]\nqp = 20'
    reload > out
    "$rdmaquota" set '*' qp=2 --process > out
    "$rdmaquota" tenant add late --user nobody > out
    "$rdmaquota" unset '*' qp --process > out
    has "a tenant that came meanwhile has the file's limit of each process, too" "$("$rdmaquota" show late --limits)" " 20 "
    "$rdmaquota" set late '*' qp=3 --process > out
    has "the node has no processes of its own" "$("$rdmaquota" set node '*' cq=2 --process 2>&1)" "'node' has no processes of its own"
    change set '*' qp=5 --process --persist
    "$rdmaquota" unset late '*' qp --process > out
    has "and the one that was saved since" "$("$rdmaquota" show late --limits)" " 5 "
    "$rdmaquota" tenant remove late > out
    "$rdmaquota" tenant add fresh --user nobody --limit qp=100 > out
    "$rdmaquota" set fresh '*' qp=500 > out
    reload > out
    has "what was set for a transient tenant is gone after a reload" "$("$rdmaquota" show fresh --limits)" " 100 "
    "$rdmaquota" tenant remove fresh > out

    policy <<< $'[slurm.job."*"]\nqp = 300\n[tenant."slurm/{account}"."*"]\nqp = 400'
    reload > out
    "$rdmaquota" slurm begin 1 --user nobody --account atlas > out 2>&1
    change set slurm/atlas '*' qp=50 --persist
    "$rdmaquota" slurm end 1 > out 2>&1
    "$rdmaquota" slurm begin 2 --user nobody --account atlas > out 2>&1
    has "an account's limit that was saved outlives its last job" "$("$rdmaquota" show slurm/atlas --limits)" " 50 "
    "$rdmaquota" slurm end 2 > out 2>&1

    policy <<< "$template"
    reload > out
    has "tenant add takes no name of a user's tenant" "$("$rdmaquota" tenant add user/nobody --user nobody 2>&1)" \
        "is what a tenant of the template 'user/{user}' may be called"
    policy <<< "$template"$'[tenant."user/nobody"."*"]\nqp = 5\n[tenant."user/65534"."*"]\nqp = 77'
    has "two tables of one user are told" "$(reload)" "another table is of the same user"
fi
policy <<< $'[tenant."batch/special/{job}"]\nmatch = [{ cgroup = "/special/{job}", members = ["*"] }]\n[tenant."batch/{account}/{job}"]\nmatch = [{ cgroup = "/{account}/{job}", members = ["*"] }]'
has "templates that can have tenants of one name are refused" "$("$rdmaquota" check policy.toml 2>&1)" \
    "'batch/special/{job}' and 'batch/{account}/{job}' can have tenants of the same name"

# --- what others than root are told ----------------------------------------------------------------------------------

if [ "$(id -u)" = 0 ]; then
    policy <<< $'[tenant.blue]\nmatch = [{ user = "root" }]\n[tenant.blue."*"]\nqp = 3'
    reload > out
    cp "$rdmaquota" ordinary && chmod 0755 . ordinary
    as_nobody() { setpriv --reuid=nobody --regid=nogroup --clear-groups ./ordinary "$@" 2>&1; }
    said=$(as_nobody doctor)
    has "doctor counts the tenants that a user may not examine" "$said" "1 besides default; only root and their members may examine 1 of them"
    lacks "and finds no problem in that" "$said" "problem  tenant"
    has "show says who may see another's tenant" "$(as_nobody show blue)" "only members of its tenant and root may use it"
fi

# --- the sample ------------------------------------------------------------------------------------------------------

mkdir sample
# Each line that could be a setting, with the table above it; all of them; [[dynamic]] is whole or not at all.
python3 - "$here/../../rdma-core.d/rdmaquota.toml" << 'END'
import re, sys
lines = open(sys.argv[1]).read().split('\n')
setting = re.compile(r'^# (?=\[|[a-z_]+ = )')
table = re.compile(r'^(# )?\[')

def put(name, chosen):
    text = '\n'.join(setting.sub('', line) if number in chosen else line for number, line in enumerate(lines))
    open(f'sample/{name}.toml', 'w').write(text)

settings = [number for number, line in enumerate(lines) if setting.match(line)]
put('all', settings)
for number in settings:
    header = max(at for at in range(number + 1) if table.match(lines[at]))
    whole = range(header, len(lines)) if '[[' in lines[header] else [header, number]
    put(number + 1, [at for at in whole if at in settings])
END
wrong=
for file in sample/*.toml; do
    "$rdmaquota" check "$file" > out 2>&1 || wrong+="$file: $(cat out)"$'\n'
done
is "each line of the sample can be uncommented, and all together" "$wrong" ""
is "there are many" "$(($(find sample -name '*.toml' | wc -l) > 20))" 1

finish
