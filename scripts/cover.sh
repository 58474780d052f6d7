#!/usr/bin/env bash
# Measures how much of the code that gives add-ons their credentials is run by
# the tests beside it, and fails below 80 % of the lines of any of its packages.
set -euo pipefail
cd "$(dirname "$0")/.."

least=80
profile=$(mktemp)
trap 'rm -f "$profile"' EXIT

# measure PACKAGE TESTS: the coverage of one package by the tests of another.
measure() {
	go test -count=1 -coverpkg="./$1" -coverprofile="$profile" "./$2" >/dev/null
	local percent
	percent=$(go tool cover -func="$profile" | awk '$1 == "total:" {sub("%", "", $3); print $3}')
	printf '%-36s %5s %%\n' "$1" "$percent"
	awk -v got="$percent" -v least="$least" 'BEGIN {exit !(got >= least)}' ||
		{ echo "$1 is covered by less than $least %." >&2; exit 1; }
}

measure pkg/registration/driver/token pkg/registration/driver/token
measure pkg/addon/tokeninfra pkg/addon
measure pkg/registration/agent/addon pkg/registration/agent/addon
