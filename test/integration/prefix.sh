# Shell helpers for tests with a second libibverbs; sourced after tap.sh. They make it of an existing one by putting other texts of
# the same length in place of its own.
# shellcheck shell=bash

# retext FILE OLD NEW: each OLD in a file becomes NEW
retext() {
    [ ${#2} = ${#3} ] && grep -qaF "$2" "$1" || { not_ok "retext $*"; return 1; }
    LC_ALL=C sed -i "s|$2|$3|g" "$1"
}

# make_prefix FROM PREFIX: a libibverbs that reads PREFIX/libibverbs.d/ and no other configuration, with the driver of rxe beside it, as
# Spack and conda have it. FROM is a directory of libraries, PREFIX three characters. Its libraries are in $prefix_libraries.
make_prefix() {
    local library=$1/libibverbs.so.1 own provider
    provider=$(grep -aoE '/[^ ]*/libibverbs/lib%s-rdmav' "$library" | head -n 1)
    provider=${provider%/lib%s-rdmav}
    own=$2/lib/$(printf 'x%.0s' $(seq $((${#provider} - ${#2} - 16))))/libibverbs
    prefix_libraries=${own%/*}
    mkdir -p "$own" "$2/libibverbs.d"
    cp -L "$library" "$prefix_libraries/"
    cp -L "$1"/libibverbs/librxe-rdmav*.so "$own/"
    echo 'driver rxe' > "$2/libibverbs.d/rxe.driver"
    retext "$prefix_libraries/libibverbs.so.1" "$provider" "$own"
    retext "$prefix_libraries/libibverbs.so.1" /etc/libibverbs.d "$2/libibverbs.d/"
}
