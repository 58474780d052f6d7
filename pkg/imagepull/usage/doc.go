// Package usage returns which ServiceAccounts Pods run as, or will run as.
//
// It owns the index of Pods and workloads by their ServiceAccount, and reads none of
// their other fields. It writes nothing.
//
// The package is tested in pkg/imagepull.
package usage
