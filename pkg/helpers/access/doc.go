// Package access asks an API server which permissions the user of a client lacks, and
// whether a ServiceAccount has one. It grants nothing and decides nothing by the answer.
package access
