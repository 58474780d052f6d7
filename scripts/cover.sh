#!/usr/bin/env bash
# Prints how much of the module the tests run, the programs that they start
# included, and fails below 80 % of its statements.
#
# With a directory, it reads what "make test COVER=DIR" has counted there;
# without one it runs the tests first.
set -euo pipefail
cd "$(dirname "$0")/.."

least=80

counted=${1:-}
profile=$(mktemp)
trap 'rm -f "$profile"' EXIT
if [ -z "$counted" ]; then
	counted=bin/coverage
	make --no-print-directory test "COVER=$counted"
fi
go tool covdata textfmt -i="$counted" -o="$profile"

# A line of the profile is a block: file:from,to statements runs. Test support is
# not counted, nor what generators wrote.
awk -v least="$least" '
	NR == 1 || $1 ~ /\/pkg\/test\// || $1 ~ /\/zz_generated/ { next }
	{
		package = $1; sub(/\/[^\/]*$/, "", package); sub(/^[^\/]*\/[^\/]*\/[^\/]*\//, "", package)
		all[package] += $2; total += $2
		if ($3 > 0) { run[package] += $2; covered += $2 }
	}
	END {
		for (package in all) printf "%-48s %6.1f %%\n", package, 100 * run[package] / all[package] | "sort"
		close("sort")
		percent = total ? 100 * covered / total : 0
		printf "%-48s %6.1f %%\n", "all", percent
		if (percent < least) { printf "the tests run less than %d %% of the statements\n", least > "/dev/stderr"; exit 1 }
	}' "$profile"
