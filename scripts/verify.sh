#!/usr/bin/env bash
# Runs every check, and says at the end which failed rather than stopping at
# the first.
set -uo pipefail
cd "$(dirname "$0")/.."

# So that make build finds compiled what is compiled here.
export GOFLAGS="${GOFLAGS:+$GOFLAGS }-trimpath"

failed=()
check() {
	local start=$SECONDS
	echo "--- $*"
	"$@" || failed+=("$*")
	echo "--- $* took $((SECONDS - start)) s"
}

unchanged() {
	local new
	new=$(git ls-files --others --exclude-standard)
	[ -z "$new" ] || printf 'not in the tree: %s\n' "$new" >&2
	git diff --exit-code -- . && [ -z "$new" ]
}

# A merge that was half resolved leaves markers, which no compiler sees in a page.
resolved() {
	! git grep -nE '^(<<<<<<<|>>>>>>>) ' -- .
}

# A dirty tree cannot show what generating changed.
before=$(git status --porcelain)
check make --no-print-directory generate
check make --no-print-directory tidy
check make --no-print-directory lint
check go run ./scripts/words
check resolved
# The commands are for macOS and Windows, too.
for system in darwin/arm64 windows/amd64; do
	check go run -exec "env CGO_ENABLED=0 GOOS=${system%/*} GOARCH=${system#*/}" ./scripts/typecheck ./pkg/cmd/... ./cmd/kubectl-ocm
done
if [ -z "$before" ]; then
	check unchanged
fi

if [ "${#failed[@]}" -gt 0 ]; then
	printf 'failed: %s\n' "${failed[@]}" >&2
	exit 1
fi
