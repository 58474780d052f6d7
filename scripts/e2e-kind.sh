#!/usr/bin/env bash
# What runs on the clusters of make e2e-kind: the end-to-end suite, then the tests that
# pause, cut off and restart nodes, also when the suite has failed.
set -uo pipefail
cd "$(dirname "$0")/.."

# go test ends an interrupted run like a failed one.
trap 'exit 130' INT
failed=0
go test -count=1 -shuffle=on -timeout 60m ${TESTFLAGS:-} ./e2e || failed=1
cd e2e/kind
go test -count=1 -timeout 60m ${TESTFLAGS:-} ./nodes || failed=1
exit "$failed"
