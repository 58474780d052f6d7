// Package podspec finds how the Pods of a workload are specified. It knows the kinds
// of Kubernetes, and no others.
package podspec
