// Package fair is a bounded cache that many clusters share.
//
// It owns who loses an entry when the cache is full: the cluster that holds the
// most bytes, and of its entries the one that was used longest ago. A cluster
// that holds less than an equal share never loses anything to the others.
package fair
