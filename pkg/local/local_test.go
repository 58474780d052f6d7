package local_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local"
	localplane "github.com/kubectl-ocm/kubectl-ocm/pkg/local/controlplane"
)

func TestWithoutClusters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := local.Status(t.Context(), dir); !errors.Is(err, local.ErrNoClusters) {
		t.Errorf("status: %v", err)
	}
	if _, err := local.Kubeconfig(dir, ""); !errors.Is(err, local.ErrNoClusters) {
		t.Errorf("kubeconfig: %v", err)
	}
	if err := local.Logs(t.Context(), local.LogRequest{Dir: dir, Cluster: "hub"}, io.Discard); !errors.Is(err, local.ErrNoClusters) {
		t.Errorf("logs: %v", err)
	}
	if removed, err := local.Down(t.Context(), dir, clock.RealClock{}); err != nil || len(removed) != 0 {
		t.Errorf("down: %v, %v", removed, err)
	}
}

func TestPreflight(t *testing.T) {
	t.Parallel()
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "thesis"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*local.Options){
		"holds files that are not local clusters": func(o *local.Options) { o.Dir = foreign },
		"MiB are free":             func(o *local.Options) { o.Managed = 1 << 30 },
		"is no executable file":    func(o *local.Options) { o.Images["x"] = "/no/such/file" },
		"cannot run Pods here":     func(o *local.Options) { o.Container = []string{"/no/such/file"} },
		"could not be started: ":   func(o *local.Options) { o.Localkube = "/no/such/localkube" },
		"its supervisor ended; ":   func(o *local.Options) { o.Supervisor = func(string, string) []string { return []string{"/bin/false"} } },
		"start the supervisor: fo": func(o *local.Options) { o.Supervisor = func(string, string) []string { return []string{"/no/such"} } },
	} {
		o := options(t, filepath.Join(t.TempDir(), "clusters"), 0)
		change(&o)
		err := local.Up(t.Context(), o)
		var problem *local.HintedError
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		} else if !errors.As(err, &problem) && !strings.Contains(want, "start the") {
			t.Errorf("%v does not say what to do", err)
		}
		if _, err := local.Down(t.Context(), o.Dir, clock.RealClock{}); err != nil {
			t.Errorf("down after %q: %v", want, err)
		}
	}
	if _, err := os.Stat(filepath.Join(foreign, "thesis")); err != nil {
		t.Error("down removed what is not ours")
	}
}

func TestFindLocalkube(t *testing.T) {
	t.Parallel()
	dir, home := t.TempDir(), t.TempDir()
	self := filepath.Join(dir, "bin", "kubectl-ocm")
	find := func(explicit string) (string, error) {
		return local.FindLocalkube(explicit, self, func(name string) string { return map[string]string{"HOME": home}[name] })
	}
	_, err := find(filepath.Join(dir, "none"))
	var problem *local.HintedError
	if !errors.Is(err, localplane.ErrNotBuilt) || !errors.As(err, &problem) || !strings.Contains(problem.Hint(), "kubectl-ocm-localkube") ||
		!strings.Contains(problem.Hint(), "make localkube") {
		t.Errorf("a missing binary: %v", err)
	}
	// From the last place to the first.
	for _, place := range []string{
		filepath.Join(home, ".local/libexec/kubectl-ocm/localkube"),
		filepath.Join(dir, "libexec/kubectl-ocm/localkube"),
		filepath.Join(dir, "bin/localkube"),
	} {
		if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(place, nil, 0o700); err != nil {
			t.Fatal(err)
		}
		if got, err := find(""); err != nil || got != place {
			t.Errorf("found %q, %v, want %q", got, err, place)
		}
	}
}

func TestDefaultDir(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ data, home, want string }{
		{"/data", "/home/a", "/data/kubectl-ocm/local"},
		{"", "/home/a", "/home/a/.local/share/kubectl-ocm/local"},
		{"", "", ""},
	} {
		got, err := local.DefaultDir(func(name string) string {
			return map[string]string{"XDG_DATA_HOME": test.data, "HOME": test.home}[name]
		})
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%+v: %q, %v", test, got, err)
		}
	}
}
