// Package atomicfile writes small files atomically and readable by their owner only,
// such as kubeconfigs and keys. Its users test it.
package atomicfile
