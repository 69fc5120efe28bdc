#!/bin/bash
# provider_test.sh BUILD: the provider where it can do nothing: it says so in one line and leaves the
# program alone. Needs no RDMA.
set -u
# shellcheck source=test/integration/tap.sh
. "$(dirname "$0")/tap.sh"
loader=$1/test/programs/load_libraries
stub=$1/test/programs/stub/libibverbs.so.1
provider=$1/provider/librdmaquota.so
unset RDMAQUOTA_DIR RDMAQUOTA_LOG_LEVEL RDMAQUOTA_LOG_FILE

out=$("$loader" "$stub" "$provider" 2> log.$$)
is "beside a libibverbs of an unknown private ABI the program goes on" "$out" "all loaded"
is "one line says what and what to do" "$(cat log.$$)" \
    "rdmaquota: $stub: private ABI 99 is unknown to this version of rdmaquota; update rdmaquota; \
what programs open by it is not limited"
out=$("$loader" "$provider" 2> log.$$)
is "without any libibverbs nothing is said" "$out$(cat log.$$)" "all loaded"
for first in "$provider" "$1/provider/librdmaquota-rdmav34.so"; do
    out=$("$loader" libibverbs.so.1 "$first" 2> log.$$)
    is "beside the real one nothing is said, by ${first##*/}" "$out$(cat log.$$)" "all loaded"
done
is "it needs libc and the loader only" \
    "$(ldd "$provider" | awk '{print $1}' | grep -v -e vdso -e libc.so -e ld-linux)" ""
# The newest version node that it asks for, which images of containers must have.
newest=$(objdump -T "$provider" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1)
is "it needs no glibc newer than 2.34" "$(printf '%s\n' "${newest:-none}" GLIBC_2.34 | sort -V | tail -n 1)" "GLIBC_2.34"
is "it exports what its stubs call, and nothing else" "$(nm -D --defined-only "$provider" | awk '$2 != "A" { print $3 }')" \
    "rdmaquota_adopt@@RDMAQUOTA_PROVIDER"
rm log.$$
finish
