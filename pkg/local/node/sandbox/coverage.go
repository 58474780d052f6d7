package sandbox

import (
	"os"
	"slices"
)

const (
	// coverageVariable names the directory to which a program that was built with
	// "go build -cover" writes which statements it ran.
	coverageVariable = "GOCOVERDIR"
	// coverageDir is that directory in a container.
	coverageDir = "/coverage"
)

// withCoverage gives a container the coverage directory of the node's own process, if
// that has one, so that the coverage of end-to-end tests counts what runs in Pods. env
// is the environment of the process until it has the container's mounts.
func withCoverage(spec Spec) (counted Spec, env []string) {
	dir := os.Getenv(coverageVariable)
	if dir == "" {
		return spec, spec.Env
	}
	env = append(slices.Clone(spec.Env), coverageVariable+"="+dir)
	spec.Env = append(slices.Clone(spec.Env), coverageVariable+"="+coverageDir)
	spec.Mounts = append(slices.Clone(spec.Mounts), Mount{Source: dir, Path: coverageDir})
	return spec, env
}
