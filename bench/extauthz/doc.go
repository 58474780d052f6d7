// Package extauthz measures the token authorizer: the process that "controller
// extauthz" is, with tokens and a hub of real API servers, under the load of a
// second process that asks as Envoy does, over gRPC. Run it with make bench, or
// alone with
//
//	make build localkube && go test -run '^$' -bench . -benchtime 1x -timeout 10m ./bench/extauthz
//
// It leaves a CPU profile of the process under load in bin/extauthz-cpu.pprof.
package extauthz
