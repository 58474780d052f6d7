// Package atomicfile writes small files atomically and readable by their owner only,
// such as kubeconfigs and keys.
package atomicfile
