// Package atomicfile writes small files that must be there wholly or not at
// all, and that nobody else may read, such as kubeconfigs and keys.
package atomicfile
