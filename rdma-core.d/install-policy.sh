#!/bin/sh
# Installs the default policy if there is none. Never touches an administrator's file.
#
#   install-policy.sh FILE DIRECTORY      (Meson gives DESTDIR in the environment)
set -eu

file=$1
target=${DESTDIR:-}$2/rdmaquota.toml
install -d -m 0755 "${target%/*}" "${target%/*}/conf.d"

if [ -e "$target" ] || [ -L "$target" ]; then
    echo "Keeping the policy that is there: $target"
    exit 0
fi
echo "Installing the default policy: $target"
install -m 0644 "$file" "$target"
