#!/usr/bin/env bash
# Changes the code that decides, one change at a time, and counts the changes
# that its tests notice: gremlins makes those of the packages whose tests are
# quick, and scripts/mutants/mutants.yaml lists those of the others. Fails below
# 90 %. PACKAGES selects among the former; "none" leaves them out.
set -euo pipefail
cd "$(dirname "$0")/.."

least=90
packages=${PACKAGES:-credential bootstrap registration/driver/csr registration/driver/token tokenauthorizer/policy tokenauthorizer/subject tokenauthorizer/jwks}
[ "$packages" != none ] || packages=
export CGO_ENABLED=0

# Not a tool of go.tools.mod: nothing that builds or checks the product needs it.
[ -z "$packages" ] || GOBIN="$PWD/bin" go install github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0

# gremlins gives a mutant a multiple of the time of its first run, in which nothing
# may come from the cache. Where tests on control planes would take too long for each
# mutant, they are left out.
fresh='-count=1'
quick="$fresh -skip=^(TestConformance|TestRealAPIServers)\$"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
killed=0 lived=0
for package in $packages; do
	case $package in
	tokenauthorizer/jwks | registration/driver/csr) goflags=$quick ;;
	*) goflags=$fresh ;;
	esac
	GOFLAGS=$goflags bin/gremlins unleash --workers 1 --timeout-coefficient 5 "./pkg/$package" >"$log" 2>&1 || { cat "$log"; exit 1; }
	k=$(grep -cE '^ *(KILLED|TIMED OUT) ' "$log" || true)
	l=$(grep -cE '^ *LIVED ' "$log" || true)
	printf '%-28s %4d of %4d\n' "$package" "$k" "$((k + l))"
	# What no test runs is shown and not counted: constants are among it.
	grep -E '^ *(LIVED|NOT COVERED) ' "$log" | sed "s| at | at pkg/$package/|" || true
	killed=$((killed + k)) lived=$((lived + l))
done
if [ $((killed + lived)) -gt 0 ]; then
	awk -v k="$killed" -v l="$lived" -v least="$least" 'BEGIN {
		printf "%d of %d mutants of gremlins killed: %.1f %%\n", k, k + l, 100 * k / (k + l)
		exit 100 * k < least * (k + l)
	}'
fi
go run ./scripts/mutants -least "$least"
