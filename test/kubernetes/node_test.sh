#!/bin/bash
# node.sh of the base for Kubernetes, which the DaemonSet runs on each node: the policy of a ConfigMap in force, and the CDI
# specifications of its tenants. A program in place of nsenter runs here what would run on the node. Needs no RDMA.
#
#   node_test.sh BUILD_DIRECTORY
build=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/integration/tap.sh
. "$here/../integration/tap.sh"
node=$(realpath "$here/../../rdma-core.d/kubernetes/node.sh")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit
mkdir bin etc config quota
cat > bin/nsenter << 'END'
#!/bin/sh
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
END
chmod +x bin/nsenter
export PATH="$work/bin:$build/tools/rdmaquota:$PATH" RDMAQUOTA_DIR="$work/quota" RDMAQUOTA_ETC="$work/etc"

# config QPS TENANT...: a ConfigMap
config() {
    local tenant
    printf 'version = 1\n[tenant.default."*"]\nqp = %s\n' "$1" > config/rdmaquota.toml
    shift
    echo "# tenants" > config/tenants
    for tenant in "$@"; do
        printf '[tenant."%s"."*"]\nqp = 5\n' "$tenant" >> config/rdmaquota.toml
        echo "$tenant  # a team" >> config/tenants
    done
}
specifications() { ls etc/cdi | tr '\n' ' '; }

config 7 blue physics/atlas
succeeds "a policy is put in force" "$node" policy config
has "it is the node's file" "$(cat etc/rdmaquota/rdmaquota.toml)" "qp = 7"
has "its limits hold" "$(rdmaquota show --limits 2>&1)" "7"
is "each tenant has a specification" "$(specifications)" "rdmaquota-blue.json rdmaquota-physics:atlas.json "
has "for its device" "$(cat etc/cdi/rdmaquota-physics:atlas.json)" '"physics:atlas"'

touch etc/cdi/vendor.json
config 8 blue
succeeds "another policy follows" "$node" policy config
is "a tenant that is gone has no specification, and others' stay" "$(specifications)" "rdmaquota-blue.json vendor.json "

echo 'qpp = 1' >> config/rdmaquota.toml
said=$("$node" policy config 2>&1)
is "a policy with a mistake is refused" $? 1
has "with its place" "$said" "rdmaquota.toml.new:"
has "and what holds now" "$said" "the one before it is"
has "the node's file is the old one" "$(cat etc/rdmaquota/rdmaquota.toml)" "qp = 8"
is "and nothing is left of the new one" "$(ls etc/rdmaquota)" rdmaquota.toml

config 9 blue
echo red >> config/tenants
said=$("$node" policy config 2>&1)
is "a tenant that the policy lacks is an error" $? 1
has "which names it" "$said" "'red'"
has "the node's file stays" "$(cat etc/rdmaquota/rdmaquota.toml)" "qp = 8"
lacks "and so does what is in force" "$(rdmaquota show --limits)" " 9 "
is "no packages are an error" "$("$node" install "$work/bin" 2>&1)" "node.sh: no packages in $work/bin"
finish
