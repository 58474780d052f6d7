// Package upgrade holds the end-to-end test of releases that meet: the hub, the agents and
// the command of an earlier release with those of this tree, one part upgraded after the
// other, and the way back. Its tests have the build tag upgrade, because they need the
// earlier release in bin/previous; "make test-upgrade" builds it and runs them.
package upgrade
