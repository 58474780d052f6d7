#!/usr/bin/env bash
# Runs every check, and says at the end which failed rather than stopping at
# the first.
set -uo pipefail
cd "$(dirname "$0")/.."

failed=()
check() {
	local start=$SECONDS
	echo "--- $*"
	"$@" || failed+=("$*")
	echo "--- $* took $((SECONDS - start)) s"
}

unchanged() {
	git diff --exit-code -- . && test -z "$(git ls-files --others --exclude-standard | tee /dev/stderr)"
}

# A dirty tree cannot show what generating changed.
before=$(git status --porcelain)
check make --no-print-directory generate
check make --no-print-directory tidy
check make --no-print-directory lint
if [ -z "$before" ]; then
	check unchanged
fi

if [ "${#failed[@]}" -gt 0 ]; then
	printf 'failed: %s\n' "${failed[@]}" >&2
	exit 1
fi
