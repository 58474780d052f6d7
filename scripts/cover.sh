#!/usr/bin/env bash
# Measures how much of the code that gives add-ons their credentials is run by
# the tests next to it, and fails below 80 % of the statements of any of its
# packages. All are measured in one run.
set -euo pipefail
cd "$(dirname "$0")/.."

least=80
measured=(pkg/registration/driver/token pkg/addon/tokeninfra pkg/registration/agent/addon)
tests=(./pkg/registration/driver/token ./pkg/addon ./pkg/registration/agent/addon)

profile=$(mktemp)
log=$(mktemp)
trap 'rm -f "$profile" "$log"' EXIT
packages=$(printf ',./%s' "${measured[@]}")
go test -count=1 -coverpkg="${packages:1}" -coverprofile="$profile" "${tests[@]}" >"$log" 2>&1 || { cat "$log"; exit 1; }

# A line of the profile is a block: file:from,to statements runs. A block stands
# in it once for each test binary.
for package in "${measured[@]}"; do
	awk -v package="$package" -v least="$least" '
		index($1, "/" package "/") {
			file = $1; sub(/:.*/, "", file)
			rest = substr(file, index(file, package) + length(package) + 1)
			if (rest ~ /\//) next
			statements[$1] = $2
			if ($3 > 0) run[$1] = 1
		}
		END {
			for (block in statements) { all += statements[block]; if (block in run) covered += statements[block] }
			percent = all ? 100 * covered / all : 0
			printf "%-36s %5.1f %%\n", package, percent
			if (percent < least) { printf "%s is covered by less than %d %%.\n", package, least > "/dev/stderr"; exit 1 }
		}' "$profile"
done
