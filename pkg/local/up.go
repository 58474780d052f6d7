package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/controlplane"
)

const statePoll = 50 * time.Millisecond

// Options are the options of Up.
type Options struct {
	// Dir is the directory of the clusters.
	Dir string
	// Managed is the number of managed clusters.
	Managed int
	// Localkube is the control plane's executable.
	Localkube string
	// HubLocalkube is the executable of the hub's control plane, if it is another.
	HubLocalkube string
	// Images maps image references to executables, by absolute paths.
	Images map[string]string
	// NoClientSigner starts a hub that signs no client certificates.
	NoClientSigner bool
	// CertDuration is the longest life of certificates that clusters sign; 0
	// is Kubernetes' default.
	CertDuration time.Duration
	// APIServerArgs are more arguments of every API server.
	APIServerArgs []string
	// Supervisor returns the command line that runs Supervise for a cluster.
	Supervisor func(dir, cluster string) []string
	// Container is the command line that runs sandbox.Enter.
	Container []string
	// Report, if set, receives what a cluster is doing. It is called
	// from several goroutines.
	Report func(cluster, doing string)
	Clock  clock.WithTicker
}

// Up starts the hub and the managed clusters that do not run, in parallel, and returns
// when every one can run Pods. It leaves clusters alone that run already or that exceed
// the requested number. It reports all errors together.
func Up(ctx context.Context, o Options) error {
	if err := preflight(o); err != nil {
		return err
	}
	dir := layout(o.Dir)
	if err := dir.make(); err != nil {
		return explainSpace(err)
	}
	release, err := dir.lockDir()
	if err != nil {
		return err
	}
	defer release()
	names := clusterNames(o.Managed)
	failures := make([]error, len(names))
	var starting sync.WaitGroup
	for i, name := range names {
		starting.Go(func() {
			if err := o.up(ctx, dir.cluster(name)); err != nil {
				failures[i] = fmt.Errorf("cluster %s: %w", name, err)
			}
		})
	}
	starting.Wait()
	if err := errors.Join(failures...); err != nil {
		return explainSpace(err)
	}
	return dir.mergeKubeconfigs()
}

// make makes the directory and marks it as ours. A directory that holds
// something else is refused, because Down would remove it.
func (l layout) make() error {
	entries, err := os.ReadDir(string(l))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if _, err := os.Stat(l.marker()); err != nil && len(entries) > 0 {
		return &HintedError{
			Err:  fmt.Errorf("%s holds files that are not local clusters", string(l)),
			Todo: "name an empty or new directory with --dir",
		}
	}
	if err := os.MkdirAll(l.clusters(), 0o700); err != nil {
		return err
	}
	return os.WriteFile(l.marker(), nil, 0o600)
}

func (o Options) report(cluster, doing string) {
	if o.Report != nil {
		o.Report(cluster, doing)
	}
}

// up starts one cluster.
func (o Options) up(ctx context.Context, cluster clusterLayout) error {
	if err := os.MkdirAll(string(cluster), 0o700); err != nil {
		return err
	}
	want := Spec{
		Name: cluster.name(), Localkube: o.Localkube, Images: o.Images,
		CertDuration: o.CertDuration, APIServerArgs: o.APIServerArgs,
	}
	if cluster.name() == HubName {
		want.Localkube = cmp.Or(o.HubLocalkube, o.Localkube)
		want.NoClientSigner = o.NoClientSigner
	}
	pid, err := cluster.supervisor()
	if err != nil {
		return err
	}
	if pid != 0 && o.same(cluster, want) {
		err := o.await(ctx, cluster, pid, func() bool {
			pid, err := cluster.supervisor()
			return err == nil && pid == 0
		})
		if !errors.Is(err, ErrNotRunning) {
			return err
		}
		// It was about to end.
	} else if pid != 0 {
		o.report(cluster.name(), "restarting with other settings")
		if err := stop(ctx, cluster, o.Clock); err != nil {
			return err
		}
	}
	return o.start(ctx, cluster, want)
}

// start starts a cluster that has no supervisor.
func (o Options) start(ctx context.Context, cluster clusterLayout, want Spec) error {
	if err := writeJSON(cluster.spec(), want); err != nil {
		return err
	}
	pid, err := o.launch(cluster)
	if err != nil {
		return err
	}
	return o.await(ctx, cluster, pid, func() bool {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(pid, &status, syscall.WNOHANG, nil)
		return ended == pid || err != nil
	})
}

func (o Options) same(cluster clusterLayout, want Spec) bool {
	var have Spec
	if err := readJSON(cluster.spec(), &have); err != nil {
		return false
	}
	return have.Name == want.Name && have.Localkube == want.Localkube && have.CertDuration == want.CertDuration &&
		have.NoClientSigner == want.NoClientSigner && maps.Equal(have.Images, want.Images) &&
		slices.Equal(have.APIServerArgs, want.APIServerArgs)
}

// launch starts a supervisor in a session of its own, so that neither the end
// of this process nor that of the terminal reaches it.
func (o Options) launch(cluster clusterLayout) (pid int, err error) {
	log, err := os.OpenFile(cluster.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { _ = log.Close() }() // the supervisor has its own descriptor
	argv := o.Supervisor(o.Dir, cluster.name())
	cmd := &exec.Cmd{
		Path: argv[0], Args: argv, Dir: "/", Stdout: log, Stderr: log,
		Env:         os.Environ(),
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start the supervisor: %w", err)
	}
	return cmd.Process.Pid, nil
}

// await returns when the supervisor pid says that its cluster runs. ended
// reports whether that process has ended.
func (o Options) await(ctx context.Context, cluster clusterLayout, pid int, ended func() bool) error {
	said := ""
	for {
		over := ended()
		var state State
		if err := readJSON(cluster.state(), &state); err != nil {
			return err
		}
		if state.PID == pid {
			switch state.Phase {
			case Running:
				// A supervisor that was killed has not written that it ended.
				if err := new(ClusterStatus).countPods(ctx, cluster); err == nil {
					o.report(cluster.name(), "ready")
					return nil
				}
			case Failed:
				return o.failure(cluster, state)
			case Starting, Degraded, Stopped:
			}
			if state.Message != said {
				said = state.Message
				o.report(cluster.name(), said)
			}
		}
		if over {
			return o.failure(cluster, State{})
		}
		if !pause.For(ctx, o.Clock, statePoll) {
			return fmt.Errorf("wait for its start: %w", context.Cause(ctx))
		}
	}
}

func (o Options) failure(cluster clusterLayout, state State) error {
	err := fmt.Errorf("it could not be started: %s", state.Message)
	if state.PID == 0 {
		err = fmt.Errorf("%w: its supervisor ended; the end of %s:\n%s", ErrNotRunning, cluster.log(), controlplane.Tail(cluster.log()))
	}
	if state.Hint != "" {
		return &HintedError{Err: err, Todo: state.Hint}
	}
	return &HintedError{Err: err, Todo: "look into " + filepath.Join(cluster.controlPlane(), "logs") +
		"; if the state was damaged, take the clusters down and up again"}
}

// localkube is the file name of the control plane's executable.
const localkube = "localkube"

// FindLocalkube returns the control plane's executable: explicit if it is not "", else
// the first that exists of these: next to our own executable, in the directories where
// archives and packages have it, on the PATH.
func FindLocalkube(explicit, self string, getenv func(string) string) (string, error) {
	candidates := []string{filepath.Join(filepath.Dir(self), localkube)}
	prefixes := []string{filepath.Join(filepath.Dir(self), ".."), "/usr/local", "/usr"}
	if home := getenv("HOME"); home != "" {
		prefixes = slices.Insert(prefixes, 1, filepath.Join(home, ".local"))
	}
	for _, prefix := range prefixes {
		if path := filepath.Join(prefix, "libexec", productDir, localkube); !slices.Contains(candidates, path) {
			candidates = append(candidates, path)
		}
	}
	if found, err := exec.LookPath(localkube); err == nil {
		candidates = append(candidates, found)
	}
	path, err := controlplane.FindBinary(explicit, candidates...)
	if err != nil {
		return "", &HintedError{Err: err, Todo: fmt.Sprintf("install kubectl-ocm-localkube, a package and an archive of %s; in a checkout, run: make localkube; "+
			"or name the file with --localkube or LOCALKUBE", buildinfo.ReleasePage(buildinfo.Version))}
	}
	return path, nil
}
