#!/usr/bin/env bash
# Builds the container image from the static binary. IMAGE names it; without
# one it gets the name that the manifests use by default.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! docker info >/dev/null 2>&1; then
	echo "Building an image needs a running Docker engine; \"docker info\" does not reach one." >&2
	exit 1
fi
CGO_ENABLED=0 make --no-print-directory build
image=${IMAGE:-$(bin/kubectl-ocm images)}
docker build --tag "$image" .
echo "Built $image. Push it where your clusters can pull it and name it with --image."
