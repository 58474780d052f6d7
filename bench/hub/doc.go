// Package hub measures what a hub costs with many clusters: the process that
// "controller hub" is, against a real API server, with simulated agents. Run it
// with make bench, or alone with
//
//	make build localkube && go test -run '^$' -bench . -benchtime 1x -timeout 30m ./bench/hub
//
// BENCH_CLUSTERS changes the number of clusters, which is 1,000.
package hub
