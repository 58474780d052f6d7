#!/usr/bin/env bash
# Runs the benchmarks behind docs/benchmarks.md and keeps what they print in
# bin/bench.txt. BENCH selects some of them by a regular expression.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p bin
bench() {
	go test -run '^$' -bench "$1" -benchtime "$2" -timeout 60m "$3"
}
{
	bench "${BENCH:-Start}" 20x ./bench
	bench "${BENCH:-LocalUp}" 3x ./bench
	bench "${BENCH:-Join}" 1x ./bench
	bench "${BENCH:-.}" 1x ./bench/hub
} | tee bin/bench.txt
