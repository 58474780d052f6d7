#!/usr/bin/env bash
# Runs the end-to-end suite on kind clusters: creates a hub and four managed
# clusters, loads our image into them, runs the suite, deletes them again.
# KEEP=1 leaves the clusters running; NODE_IMAGE names kind's node image.
set -euo pipefail
cd "$(dirname "$0")/.."

for tool in docker kind kubectl; do
	if ! command -v "$tool" >/dev/null 2>&1; then
		echo "e2e-kind needs $tool on the PATH." >&2
		exit 1
	fi
done

clusters=(ocm-e2e-hub ocm-e2e-cluster{1..4})
dir=$(mktemp -d)
export KUBECONFIG=$dir/kubeconfig

delete_clusters() {
	if [ -z "${KEEP:-}" ]; then
		for name in "${clusters[@]}"; do kind delete cluster --name "$name" || true; done
		rm -rf "$dir"
	else
		echo "The clusters are kept; use them with KUBECONFIG=$KUBECONFIG"
	fi
}
trap delete_clusters EXIT

image=kubectl-ocm:e2e
make --no-print-directory image IMAGE=$image IMAGE_PLATFORMS=linux/amd64
for name in "${clusters[@]}"; do
	kind create cluster --name "$name" --wait 120s ${NODE_IMAGE:+--image "$NODE_IMAGE"}
	kind load image-archive --name "$name" bin/image.tar
	# The suite knows the clusters by the names that local clusters have.
	kubectl config rename-context "kind-$name" "${name#ocm-e2e-}"
done

# Pods of one kind cluster reach another's API server by its container's name.
export E2E_ENVIRONMENT=kind E2E_IMAGE=$image
export E2E_HUB_APISERVER=https://ocm-e2e-hub-control-plane:6443
go test -count=1 -shuffle=on -timeout 30m ./e2e/...
