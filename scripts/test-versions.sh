#!/usr/bin/env bash
# Runs the end-to-end suite on local clusters of other Kubernetes releases, one cell
# after the other, and says at the end what each gave. A cell is HUB:MANAGED; the
# arguments are the cells to run. TESTFLAGS are those of go test.
set -uo pipefail
cd "$(dirname "$0")/.."

cells=("$@")
[ "$#" -gt 0 ] || cells=(1.30:1.30 1.33:1.33 1.30:1.36 1.36:1.30)

# The release without a module file of its own is what make localkube builds.
localkube() {
	if [ -e "cmd/localkube/versions/$1.mod" ]; then
		scripts/build-localkube.sh "$1" && echo "$PWD/bin/localkube-$1"
	else
		echo "$PWD/bin/localkube"
	fi
}

results=()
failed=0
for cell in "${cells[@]}"; do
	start=$SECONDS
	echo "=== hub ${cell%:*}, managed clusters ${cell#*:}"
	HUB_LOCALKUBE=$(localkube "${cell%:*}") && LOCALKUBE=$(localkube "${cell#*:}") &&
		export HUB_LOCALKUBE LOCALKUBE &&
		go test -count=1 -timeout 60m ${TESTFLAGS:-} ./e2e
	code=$?
	[ "$code" -eq 0 ] || failed=1
	results+=("hub ${cell%:*}, managed ${cell#*:}: exit code $code after $((SECONDS - start)) s")
done
printf '%s\n' "${results[@]}"
exit "$failed"
