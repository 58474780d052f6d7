#!/usr/bin/env bash
# Prints the packages that make race runs: those whose code starts goroutines, or shares
# memory between them with sync or sync/atomic, and those above them that have tests,
# where controllers are tested together.
set -euo pipefail
cd "$(dirname "$0")/.."

sharing=$(git grep -lE '^[[:space:]]*go (func|[a-zA-Z_.]+\()|\.Go\(|"sync(/atomic)?"' -- \
	'pkg/*.go' ':!*_test.go' ':!pkg/test' | xargs -n 1 dirname | sort -u)
for package in $sharing; do
	echo "./$package"
	above=$(dirname "$package")
	case $above in
	pkg | pkg/cmd/internal) ;;
	*) [ -z "$(git ls-files "$above/*_test.go" | grep -v "^$above/.*/")" ] || echo "./$above" ;;
	esac
done | sort -u | tr '\n' ' '
