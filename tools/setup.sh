#!/bin/bash
# setup.sh: installs the packages of Debian 12 that the build, the tests and the demo need. Needs root only when one
# is missing.
set -eu

packages=(
    # build
    g++ gcc meson ninja-build pkg-config libboost-dev libfmt-dev libibverbs-dev libcli11-dev
    libtomlplusplus-dev nlohmann-json3-dev
    # build once what several trees have in common
    ccache
    # build, of the sidecar
    bpftool clang libbpf-dev libgnutls28-dev libjs-chart.js libmicrohttpd-dev libnl-3-dev libsystemd-dev
    # build, of the plugin for Slurm
    libslurm-dev
    # build, of the agent and the coordinator: gRPC, and etcd's .proto files with what they import
    golang-etcd-server-dev golang-github-gogo-protobuf-dev golang-github-grpc-ecosystem-grpc-gateway-dev
    libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc
    # tests
    catch2 chromium-headless-shell libclang-rt-14-dev spin tcc python3 python3-yaml apparmor bubblewrap
    # the programs that are tested, and the guest in which they run
    curl etcd-client etcd-server openssl
    ibverbs-utils ibverbs-providers rdmacm-utils perftest qperf python3-pyverbs rdma-core iproute2
    qemu-system-x86 busybox-static kmod cpio debootstrap dpkg-dev make systemd util-linux xz-utils zstd
    # the RPM packages, and their test
    createrepo-c dnf rpm rpmlint
)

missing=()
for package in "${packages[@]}"; do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2> /dev/null | grep -qx installed || missing+=("$package")
done
[ ${#missing[@]} = 0 ] && exit 0

if [ "$(id -u)" != 0 ]; then
    echo "setup.sh: these packages are missing; run it as root to install them: ${missing[*]}" >&2
    exit 1
fi
export DEBIAN_FRONTEND=noninteractive
{
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "${missing[@]}"
} > /tmp/rdmaquota-setup.log 2>&1 || {
    echo "setup.sh: the packages cannot be installed: $(tail -n 1 /tmp/rdmaquota-setup.log)" \
        "(all of it in /tmp/rdmaquota-setup.log)" >&2
    exit 1
}
