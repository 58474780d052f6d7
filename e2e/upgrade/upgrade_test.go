//go:build upgrade

package upgrade_test

import (
	"slices"
	"strings"
	"testing"
)

// TestUpgrade upgrades a fleet of an earlier release: first the hub, then the agents. On
// the way, new agents join an old hub and old agents a new one, and the commands of both
// releases manage both. In every state the clusters do all that a cluster does.
func TestUpgrade(t *testing.T) {
	previous, current := releases(t)
	f := start(t, previous, current)
	f.must(t, previous, initArgs(previous)...)
	f.must(t, previous, joinArgs(previous, "cluster1")...)
	f.installAddOn(t)

	f.phase(t, "an old hub and a new agent", func(t *testing.T) {
		f.must(t, current, joinArgs(current, "cluster2")...)
		f.manage(t, current, "cluster1", "cluster2")
	}, map[string]release{"hub": previous, "cluster1": previous, "cluster2": current})
	f.phase(t, "a new hub and old agents", func(t *testing.T) {
		f.must(t, current, initArgs(current)...)
		f.must(t, previous, joinArgs(previous, "cluster3")...)
		f.manage(t, previous, "cluster1", "cluster2", "cluster3")
	}, map[string]release{"hub": current, "cluster1": previous, "cluster2": current, "cluster3": previous})
	f.phase(t, "new agents", func(t *testing.T) {
		for _, cluster := range []string{"cluster1", "cluster3"} {
			f.must(t, current, joinArgs(current, cluster)...)
		}
		f.manage(t, current, "cluster1", "cluster2", "cluster3")
	}, map[string]release{"hub": current, "cluster1": current, "cluster2": current, "cluster3": current})
	f.phase(t, "the way back", func(t *testing.T) { f.rollBack(t, previous, current) }, nil)
	f.phase(t, "forward again", func(t *testing.T) {
		f.must(t, current, initArgs(current)...)
		f.must(t, current, joinArgs(current, "cluster1")...)
	}, map[string]release{"hub": current, "cluster1": current, "cluster2": current, "cluster3": current})
	for _, cluster := range []string{"cluster1", "cluster2", "cluster3"} {
		f.must(t, current, "unjoin", "--hub-context", "hub", "--context", cluster, "--cluster-name", cluster, "--yes", "--wait", "--works", "delete")
	}
}

// phase changes the fleet, and checks which release runs where and that all clusters work.
func (f *fleet) phase(t *testing.T, name string, change func(*testing.T), runs map[string]release) {
	t.Helper()
	ok := t.Run(name, func(t *testing.T) {
		change(t)
		for where, r := range runs {
			f.expectImage(t, where, r)
		}
		for cluster := range runs {
			if cluster != "hub" {
				t.Run(cluster, func(t *testing.T) {
					t.Parallel()
					f.expectWorking(t, cluster)
				})
			}
		}
	})
	if !ok {
		t.FailNow()
	}
}

// manage runs the commands of a release that read and change the fleet's members.
func (f *fleet) manage(t *testing.T, r release, members ...string) {
	t.Helper()
	out := f.must(t, r, "get", "clusters", "--context", "hub")
	for _, cluster := range members {
		if !strings.Contains(out, cluster) {
			t.Errorf("%s does not show %s:\n%s", r.image, cluster, out)
		}
		f.must(t, r, "accept", "--context", "hub", cluster)
		f.must(t, r, "check", "cluster", cluster, "--context", "hub")
		f.must(t, r, "check", "agent", "--context", cluster)
	}
	f.must(t, r, "check", "hub", "--context", "hub")
}

// rollBack installs the previous release over this one, or has it refuse to: a release
// that comes later may store what an earlier one cannot read.
func (f *fleet) rollBack(t *testing.T, previous, current release) {
	t.Helper()
	for _, args := range [][]string{initArgs(previous), joinArgs(previous, "cluster1")} {
		switch got := f.run(t, previous, args...); {
		case got.code == 0:
			f.expectWorking(t, "cluster1")
		case got.code == 3 && slices.ContainsFunc(strings.Split(got.stderr, "\n"), refused):
		default:
			t.Errorf("%s %s: exit code %d\n%s%s", previous.image, args[0], got.code, got.stdout, got.stderr)
		}
	}
}

// refused reports whether a line says why an older release is not installed.
func refused(line string) bool {
	return strings.Contains(line, "the installed release") && strings.Contains(line, "is newer than this one")
}
