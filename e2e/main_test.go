package e2e_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

// certificateLifetime is how long certificates of the suite's hub are good. Every agent
// renews several times while the tests run, and half of it, which an agent has left when
// it renews, outlasts a start of the hub's API server on a busy machine.
const certificateLifetime = 4 * time.Minute

// tokenLifetime is how many seconds tokens of cluster2's add-ons are good; the
// API server grants no less.
const tokenLifetime = 600

// sampleImage is the image of the sample add-on.
const sampleImage = "kubectl-ocm/heartbeat-addon"

// startTimeout bounds the start of the environment.
const startTimeout = 10 * time.Minute

// fleet is the environment of all tests: a hub that init made, with a token
// authorizer, and cluster1 and cluster2 joined and accepted, which publish the
// keys of their tokens; add-ons of cluster2 get tokens. cluster3 is
// for tests that join and leave, cluster4 for one that changes its driver and one
// that takes over a name.
var fleet *environment

func TestMain(m *testing.M) {
	if servers, ok := os.LookupEnv(isolatedVariable); ok {
		if err := runIsolated(servers); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	if testing.Short() {
		fmt.Println("left out: the suite needs local clusters")
		os.Exit(0)
	}
	ctrl.SetLogger(klog.Background())
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	e, stop, err := newEnvironment(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "the environment of the end-to-end suite:", err)
		os.Exit(1)
	}
	fleet = e
	code := 1
	defer func() {
		stop()
		os.Exit(code)
	}()
	if err := e.join(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "joining the clusters of the end-to-end suite:", err)
		return
	}
	if code = m.Run(); code != 0 {
		if err := e.keepLogs(); err != nil {
			fmt.Fprintln(os.Stderr, "keeping the logs of the clusters:", err)
		}
	}
}

// newEnvironment finds or starts the clusters.
func newEnvironment(ctx context.Context) (*environment, func(), error) {
	if os.Getenv("E2E_ENVIRONMENT") == "kind" {
		return &environment{
			kubeconfig: os.Getenv("KUBECONFIG"),
			host:       os.Getenv("E2E_HOST"),
		}, func() {}, nil
	}
	return startLocal(ctx, "--managed", "4", "--certificate-lifetime", certificateLifetime.String(),
		"--image", sampleImage+"="+sampleBinary(), "--image", kubectlImage+"="+built("localkube"))
}

// startLocal starts local clusters in a directory of their own.
func startLocal(ctx context.Context, flags ...string) (*environment, func(), error) {
	dir, err := os.MkdirTemp("", "ocm-e2e-")
	if err != nil {
		return nil, nil, err
	}
	release, err := controlplane.Guard(binary(), "local", "down", "--dir", dir)
	if err != nil {
		return nil, nil, err
	}
	stop := func() {
		defer release()
		// Everything is bound to the directory, also what a failed start left.
		r, err := run(context.WithoutCancel(ctx), "", nil, "local", "down", "--dir", dir)
		if err != nil || r.code != 0 {
			fmt.Fprintln(os.Stderr, "taking the clusters down:", err, r)
		}
		_ = os.RemoveAll(dir)
	}
	if err := do(ctx, "", nil, append([]string{"local", "up", "--dir", dir}, flags...)...); err != nil {
		stop()
		return nil, nil, err
	}
	r, err := run(ctx, "", nil, "local", "kubeconfig", "--dir", dir, "--path")
	if err != nil {
		stop()
		return nil, nil, err
	}
	return &environment{dir: dir, kubeconfig: strings.TrimSpace(r.stdout)}, stop, nil
}

// join makes the fleet.
func (e *environment) join(ctx context.Context) error {
	if err := do(ctx, e.kubeconfig, nil, "init", "--context", "hub", "--wait", "--feature", "token-authorizer"); err != nil {
		return err
	}
	if err := e.joinCluster(ctx, "cluster1", "--publish-issuer"); err != nil {
		return err
	}
	if err := e.forgetBeats(ctx); err != nil {
		return err
	}
	return e.joinCluster(ctx, "cluster2", "--publish-issuer",
		"--addon-kubeclient-registration-auth", "token", "--addon-token-expiration-seconds", strconv.Itoa(tokenLifetime))
}

// forgetBeats deletes the heartbeats that a run before on the same clusters has left: tests
// would count them.
func (e *environment) forgetBeats(ctx context.Context) error {
	hub, err := e.connect("hub")
	if err != nil {
		return err
	}
	var namespaces corev1.NamespaceList
	if err := hub.List(ctx, &namespaces, client.HasLabels{names.LabelClusterName}); err != nil {
		return err
	}
	for i := range namespaces.Items {
		var beats corev1.ConfigMapList
		if err := hub.List(ctx, &beats, client.InNamespace(namespaces.Items[i].Name)); err != nil {
			return err
		}
		for j := range beats.Items {
			if beats.Items[j].Data["sequence"] == "" {
				continue
			}
			if err := hub.Delete(ctx, &beats.Items[j]); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
	}
	return nil
}

// joinCluster joins a cluster under its context's name.
func (e *environment) joinCluster(ctx context.Context, cluster string, flags ...string) error {
	args := []string{"join", "--hub-context", "hub", "--context", cluster, "--cluster-name", cluster, "--wait"}
	return do(ctx, e.kubeconfig, nil, append(args, flags...)...)
}

// do runs the command and makes an unsuccessful end an error.
func do(ctx context.Context, kubeconfig string, stdin []byte, args ...string) error {
	r, err := run(ctx, kubeconfig, stdin, args...)
	if err == nil && r.code != 0 {
		err = errors.New(r.String())
	}
	if err != nil {
		return fmt.Errorf("kubectl ocm %s: %w", strings.Join(args, " "), err)
	}
	return nil
}
