#!/usr/bin/env bash
# Runs the benchmarks behind docs/benchmarks.md and keeps what they print in
# bin/bench.txt. BENCH selects some of them by a regular expression.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p bin
go test -run '^$' -bench "${BENCH:-.}" -benchtime "${BENCHTIME:-20x}" -timeout 60m ./bench/... | tee bin/bench.txt
