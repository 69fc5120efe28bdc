# ninja.sh, to be sourced: builds programs with flags of their own, apart from Meson's build directory,
# and only what changed since the last time.
#
#   ninja_begin DIR COMPILER FLAGS...    all that follows is built in DIR with these flags
#   ninja_flags FLAGS...                 further flags for what comes from here on
#   ninja_objects SOURCE...              compiles each source once, with the flags of now
#   ninja_program NAME SOURCE...         sources relative to the repository; each is compiled once
#   ninja_end                            builds; the status is ninja's

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# The names that policy/, shm/ and provider/ expect from Meson.
common_flags=(-std=c++20 -g1 -I"$repo" -DRDMAQUOTA_RUNTIME_DIR='\"/nonexistent/rdmaquota\"')
# policy/meson.build's own; the rest of policy/ reads and writes the policy file.
mapfile -t policy_sources < <(sed -n "s|^ *'\(.*\.cpp\)',|policy/\1|p" "$repo/policy/meson.build")
policy_file_sources=()
for source in "$repo"/policy/*.cpp; do
    source=${source#"$repo"/}
    [[ " ${policy_sources[*]} " == *" $source "* ]] || policy_file_sources+=("$source")
done
shm_sources=()
for source in "$repo"/shm/*.cpp; do shm_sources+=("${source#"$repo"/}"); done

ninja_begin() {
    ninja_directory=$1
    mkdir -p "$ninja_directory"
    declare -gA ninja_known=()
    exec 5> "$ninja_directory/build.ninja"
    printf 'compiler = %s\nflags = %s %s\n' "$2" "${common_flags[*]}" "${*:3}" >&5
    cat >&5 << 'RULES'
rule compile
  command = $compiler -MD -MF $out.d $flags $own -c $in -o $out
  depfile = $out.d
  deps = gcc
rule link
  command = $compiler $flags $own $in -o $out -ldl -pthread
RULES
    ninja_own=""
}

ninja_flags() { ninja_own=$*; }

ninja_objects() {
    local source object
    for source in "$@"; do
        object=${source//\//_}.o
        [ -z "${ninja_known[$object]:-}" ] || continue
        ninja_known[$object]=1
        printf 'build %s: compile %s\n  own = %s\n' "$object" "$repo/$source" "$ninja_own" >&5
    done
}

ninja_program() {
    local name=$1 source objects=""
    shift
    ninja_objects "$@"
    for source in "$@"; do objects+=" ${source//\//_}.o"; done
    printf 'build %s: link%s\n  own = %s\n' "$name" "$objects" "$ninja_own" >&5
}

ninja_end() {
    exec 5>&-
    ninja -C "$ninja_directory" ${RDMAQUOTA_JOBS:+-j "$RDMAQUOTA_JOBS"}
}
