// Package scheme builds the runtime schemes that our clients speak: only the
// API groups that we use, because registering all of Kubernetes costs every
// start of the command time and memory. Each call returns a new scheme.
package scheme
