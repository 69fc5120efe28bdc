#!/bin/bash
# prometheus.sh: prints the directory with Debian's prometheus and promtool, taken with apt-get download and
# installed nowhere, since the package would start a server. Kept in the cache of test/vm.
# Exit status: 0 done, 77 not possible here (SKIP: and the reason on stderr).
set -eu
# shellcheck source=test/vm/common.sh
. "$(dirname "$0")/../vm/common.sh"

for directory in /usr/bin "$cache_dir/prometheus/usr/bin"; do
    [ ! -x "$directory/prometheus" ] || { echo "$directory"; exit 0; }
done
need dpkg-deb dpkg
lock prometheus
partial=$cache_dir/.partial-prometheus
rm -rf "$partial"
mkdir "$partial"
cd "$partial"
download() { apt-get download --quiet prometheus >apt.log 2>&1; }
download || { [ "$(id -u)" = 0 ] && apt-get update --quiet >apt.log 2>&1 && download; } ||
    skip "apt cannot download prometheus: $(tail -n 1 apt.log)"
dpkg-deb --extract ./prometheus_*.deb .
rm -r ./*.deb apt.log
mv -T "$partial" "$cache_dir/prometheus"
echo "$cache_dir/prometheus/usr/bin"
