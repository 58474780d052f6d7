#!/usr/bin/env bash
# What runs on the clusters of make e2e-kind: the end-to-end suite, then the tests that
# pause, cut off and restart nodes.
set -euo pipefail
cd "$(dirname "$0")/.."

go test -count=1 -shuffle=on -timeout 60m ${TESTFLAGS:-} ./e2e
cd e2e/kind
go test -count=1 -timeout 60m ${TESTFLAGS:-} ./nodes
