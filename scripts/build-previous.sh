#!/usr/bin/env bash
# Builds bin/previous/kubectl-ocm, an earlier release for the upgrade test: the
# revision that is its argument, else the newest tag v* before this commit, else the
# revision in e2e/upgrade/previous.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=$top/bin/previous/kubectl-ocm
stamp=$top/bin/previous/.stamp

cd "$top"
revision=${1:-$(git describe --tags --abbrev=0 --match 'v*' HEAD^ 2>/dev/null || cat e2e/upgrade/previous)}
want="$(git rev-parse --verify "$revision^{commit}") $(go version)"
if [ -x "$out" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$want" ]; then
	exit 0
fi

source=$(mktemp -d)
trap 'rm -rf "$source"' EXIT
git archive "$revision" | tar -x -C "$source"
echo "Building the previous release, $revision." >&2
make -C "$source" --no-print-directory build
install -D "$source/bin/kubectl-ocm" "$out"
echo "$want" >"$stamp"
