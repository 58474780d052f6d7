// Package work measures what the work agent costs with many ManifestWorks: the process
// that "controller work" is, between two real API servers. Run it with make bench, or
// alone with
//
//	make build localkube && go test -run '^$' -bench . -benchtime 1x -timeout 30m ./bench/work
//
// BENCH_CLUSTERS changes the number of works, which is 1,000.
package work
