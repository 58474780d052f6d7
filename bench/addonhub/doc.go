// Package addonhub measures what a hub costs with many add-ons that register with
// tokens: the process that "controller addon-manager" is, against a real API
// server, with simulated agents. Run it with make bench, or alone with
//
//	make build localkube && go test -run '^$' -bench . -benchtime 1x -timeout 30m ./bench/addonhub
//
// BENCH_CLUSTERS changes the number of clusters, which is 1,000; each has five
// add-ons.
package addonhub
