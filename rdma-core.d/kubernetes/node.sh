#!/bin/sh
# node.sh: what the DaemonSet of node.yaml does on its node. Needs the node's pid namespace, and all rights.
#
#   node.sh install DIR   installs the Debian packages in DIR on the node, where it has others
#   node.sh policy DIR    puts DIR/rdmaquota.toml in force, and gives each tenant of DIR/tenants a CDI specification
#   node.sh ready         status 0 where a policy is in force and the sidecar runs
set -eu
etc=${RDMAQUOTA_ETC:-/etc}  # on the node

fail() {
    echo "node.sh: $*" >&2
    exit 1
}

on_node() { nsenter --target 1 --mount --uts --ipc --net --pid -- "$@"; }

version_on_node() {
    # shellcheck disable=SC2016 # dpkg-query expands it
    on_node dpkg-query -W -f '${db:Status-Status} ${Version}' "$1" 2> /dev/null || true
}

install_packages() {
    changed=
    for package in "$1"/*.deb; do
        [ -e "$package" ] || fail "no packages in $1"
        wanted="installed $(dpkg-deb -f "$package" Version)"
        [ "$(version_on_node "$(dpkg-deb -f "$package" Package)")" = "$wanted" ] || changed=yes
    done
    [ -n "$changed" ] || return 0
    on_node mkdir -p /var/cache/rdmaquota
    tar -C "$1" -cf - . | on_node tar -C /var/cache/rdmaquota -xf -
    # A policy that is there stays: the next step writes it.
    # shellcheck disable=SC2016 # the node's shell expands it
    on_node env DEBIAN_FRONTEND=noninteractive sh -c \
        'apt-get install -y -o Dpkg::Options::=--force-confold --allow-downgrades /var/cache/rdmaquota/*.deb; status=$?; rm -r /var/cache/rdmaquota; exit $status'
}

# Whether the policy has each tenant that pods may be given.
check_tenants() {
    meaning=$(on_node rdmaquota check "$policy.new") || return
    for tenant in $(tenants_in "$1"); do
        case $meaning in *"  tenant $tenant "*) continue ;; esac
        echo "node.sh: tenants names '$tenant', which the policy does not have" >&2
        return 1
    done
}

# The file of the node is changed only when its new contents are in force.
put_in_force() {
    policy=$etc/rdmaquota/rdmaquota.toml
    on_node mkdir -p "$etc/rdmaquota"
    # shellcheck disable=SC2016 # the node's shell expands it
    on_node sh -c 'umask 022 && cat > "$1"' sh "$policy.new" < "$1"
    if check_tenants "$2" && on_node rdmaquota reload "$policy.new"; then
        on_node mv "$policy.new" "$policy"
    else
        on_node rm "$policy.new"
        fail "the policy of the ConfigMap is not in force on this node; the one before it is"
    fi
}

tenants_in() { sed 's/#.*//; s/[[:space:]]//g; /^$/d' "$1"; }

specification() { echo "$etc/cdi/rdmaquota-$(echo "$1" | tr / :).json"; }

write_specifications() {
    on_node mkdir -p "$etc/cdi"
    wanted=
    for tenant in $(tenants_in "$1"); do
        on_node rdmaquota cdi "$tenant" --output "$(specification "$tenant")"
        wanted="$wanted $(specification "$tenant") "
    done
    for file in $(on_node find "$etc/cdi" -name 'rdmaquota-*.json'); do
        case $wanted in *" $file "*) ;; *) on_node rm "$file" ;; esac
    done
}

case ${1:-} in
    install) install_packages "$2" ;;
    policy) put_in_force "$2/rdmaquota.toml" "$2/tenants" && write_specifications "$2/tenants" ;;
    ready) on_node rdmaquota which --pid 1 > /dev/null && on_node systemctl is-active --quiet rdmaquotad ;;
    *) fail "write install, policy or ready" ;;
esac
