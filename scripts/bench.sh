#!/usr/bin/env bash
# Runs the benchmarks behind docs/contributing/benchmarks.md and keeps what they print in
# bin/bench.txt; with the argument "scale" those behind its growth curves, in
# bin/bench-scale.txt. BENCH selects some of them by a regular expression.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p bin
# bench runs one benchmark of a package a number of times, unless BENCH leaves it out.
bench() {
	if [[ $1 =~ ${BENCH:-.} ]]; then
		go test -run '^$' -bench "^Benchmark$1\$" -benchtime "$2" -timeout "${4:-60m}" "$3"
	fi
}
if [[ ${1:-} == scale ]]; then
	{
		bench ScaleHub 1x ./bench/hub 3h
		bench ScaleAddOns 1x ./bench/addonhub 5h
		bench ScaleExtAuthz 1x ./bench/extauthz 3h
	} | tee bin/bench-scale.txt
	exit
fi
{
	bench Start 20x ./bench
	bench LocalUp 3x ./bench
	bench Join 1x ./bench
	bench AddOns 1x ./bench
	bench Hub 1x ./bench/hub
	bench AddOnHub 1x ./bench/addonhub
	bench Work 1x ./bench/work
	bench ReplicaSet 1x ./bench/replicaset
	bench ImagePull 1x ./bench/imagepull
	if [[ Renewals =~ ${BENCH:-.} ]]; then
		BENCH_ACCOUNTS=10000 go test -run '^TestRenewalsSpread$' -v -count 1 ./bench/imagepull
	fi
	bench ExtAuthz 1x ./bench/extauthz
	bench Memory 1x ./bench/extauthz
	bench Cold 2000x ./pkg/tokenauthorizer/subject
	bench WarmCheck 20000x ./pkg/tokenauthorizer/server
} | tee bin/bench.txt
