#!/usr/bin/env bash
# What runs on the clusters of make e2e-kind: the end-to-end suite, then the tests that
# pause, cut off and restart nodes, also when the suite has failed. Each test is printed
# when it ends, and what is skipped at the end, with its reason.
set -uo pipefail
cd "$(dirname "$0")/.."

root=$PWD
tests() {
	go tool -modfile="$root/scripts/gotestsum.mod" gotestsum --format testname -- -count=1 -timeout 60m ${TESTFLAGS:-} "$@"
}

# go test ends an interrupted run like a failed one.
trap 'exit 130' INT
failed=0
tests -shuffle=on ./e2e || failed=1
cd e2e/kind
tests ./nodes || failed=1
exit "$failed"
