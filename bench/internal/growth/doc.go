// Package growth measures what one of our processes, its API server and etcd cost at
// several sizes, tabulates it, and says how fast each cost grows: the exponent is 1 where
// twice the size costs twice as much. How a cost is measured is up to package measure, and
// what is done meanwhile to the benchmarks.
package growth
