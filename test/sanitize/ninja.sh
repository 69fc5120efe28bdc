# ninja.sh, to be sourced: builds programs with flags of their own, apart from Meson's build directory,
# and only what changed since the last time.
#
#   ninja_begin DIR COMPILER FLAGS...    all that follows is built in DIR with these flags
#   ninja_flags FLAGS...                 further flags for what comes from here on
#   ninja_objects SOURCE...              compiles each source once, with the flags of now
#   ninja_program NAME SOURCE...         sources relative to the repository; each is compiled once
#   ninja_end                            builds; the status is ninja's
#
# Programs with AddressSanitizer are all built in $address_directory with $address_flags, so that they share what they are
# made of.

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# The names that policy/, shm/ and provider/ expect from Meson.
common_flags=(-std=c++20 -g1 -I"$repo" -DRDMAQUOTA_RUNTIME_DIR='\"/nonexistent/rdmaquota\"')
address_directory=${RDMAQUOTA_BUILD:-$repo/build}/address
address_flags=(-O1 -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=all -fno-omit-frame-pointer)
sources_of() { (cd "$repo" && find "$@" -name '*.cpp' | LC_ALL=C sort); }
mapfile -t policy_sources < <(sources_of policy -maxdepth 1)
mapfile -t policy_file_sources < <(sources_of policy/file)
mapfile -t shm_sources < <(sources_of shm)

ninja_begin() {
    ninja_directory=$1
    mkdir -p "$ninja_directory"
    declare -gA ninja_known=()
    exec 6> "$ninja_directory/lock"
    flock 6
    exec 5> "$ninja_directory/build.ninja"
    printf 'cache = %s\ncompiler = %s\nflags = %s %s\n' "$(command -v ccache)" "$2" "${common_flags[*]}" "${*:3}" >&5
    cat >&5 << 'RULES'
rule compile
  command = $cache $compiler -MD -MF $out.d $flags $own -c $in -o $out
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
    local status=0
    ninja -C "$ninja_directory" ${RDMAQUOTA_JOBS:+-j "$RDMAQUOTA_JOBS"} || status=$?
    exec 6>&-
    return $status
}
