#!/usr/bin/env bash
# Prints the packages that make race runs: those whose code starts goroutines, or shares
# memory between them with sync or sync/atomic.
set -euo pipefail
cd "$(dirname "$0")/.."

git grep -lE '^[[:space:]]*go (func|[a-zA-Z_.]+\()|\.Go\(|"sync(/atomic)?"' -- 'pkg/*.go' ':!*_test.go' ':!pkg/test' |
	xargs -n 1 dirname | sort -u | sed 's|^|./|' | tr '\n' ' '
