package truststore_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/truststore"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

// environment is that of a command that was called with flags.
func environment(t *testing.T, flags ...string) cli.Env {
	t.Helper()
	env := cli.Env{Name: "kubectl ocm", Clock: clock.RealClock{}, Kube: cli.NewKube()}
	cmd := &cobra.Command{Use: "x", RunE: func(*cobra.Command, []string) error { return nil }}
	env.Kube.AddFlags(cmd.Flags())
	env.Kube.AddDryRunFlag(cmd)
	cmd.SetArgs(flags)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return env
}

func open(t *testing.T, env cli.Env, flags truststore.Flags) *truststore.Store {
	t.Helper()
	store, err := flags.Open(env)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// adding adds a cluster whose keys are published.
func adding(name string) func(*truststore.Document) error {
	return func(d *truststore.Document) error { return d.SetCluster(truststore.Entry{Name: name}) }
}

func TestAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "clusters.yaml")
	if err := errors.Join(os.WriteFile(path, []byte(commented), 0o600), os.Chmod(path, 0o640), os.Symlink("clusters.yaml", filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	store := open(t, environment(t), truststore.Flags{File: filepath.Join(dir, "link")})
	if _, changed, err := store.Edit(t.Context(), adding("cluster2")); err != nil || !changed {
		t.Fatalf("changed %v, %v", changed, err)
	}
	data, _ := os.ReadFile(path)
	info, _ := os.Lstat(path)
	link, _ := os.Lstat(filepath.Join(dir, "link"))
	if !strings.Contains(string(data), "# The shop.") || !strings.Contains(string(data), "cluster2") || info.Mode() != 0o640 || link.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("%s, %s:\n%s", info.Mode(), link.Mode(), data)
	}
	if _, changed, err := store.Edit(t.Context(), adding("cluster2")); err != nil || changed {
		t.Errorf("the same again: changed %v, %v", changed, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if doc, err := store.Read(t.Context()); err != nil || !slices.Equal(doc.Clusters(), []string{"cluster1", "cluster2"}) {
		t.Errorf("%v", err)
	}
}

func TestAFileThatIsNotThere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "clusters.yaml")
	store := open(t, environment(t), truststore.Flags{File: path})
	if _, err := store.Read(t.Context()); cli.ExitCode(err) != cli.CodeNotFound {
		t.Errorf("error %v", err)
	}
	if _, changed, err := store.Edit(t.Context(), adding("cluster1")); err != nil || !changed {
		t.Errorf("changed %v, %v", changed, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestTheLastRuleIsNotThePolicy: without its only cluster with rules, a document
// must not look like one of the seed's form, which is open.
func TestTheLastRuleIsNotThePolicy(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "clusters.yaml")
	text := fmt.Sprintf(`clusters:
- {name: a, issuer: i, jwks_data: %s, audiences: [x], allow: [{namespaces: [n], mapTo: same}]}
- {name: b, issuer: j, jwks_data: %s}
`, keySet(t, "k"), keySet(t, "l"))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	store := open(t, environment(t), truststore.Flags{File: path})
	doc, changed, err := store.Edit(t.Context(), func(d *truststore.Document) error {
		d.RemoveCluster("a")
		return nil
	})
	if err != nil || !changed || doc.Seed() {
		t.Fatalf("changed %v, %v", changed, err)
	}
	if cfg, err := config.Load(path, config.Options{}); err != nil || cfg.Seed || len(cfg.Clusters) != 1 || len(cfg.Clusters[0].Spec.Allow) != 0 {
		t.Errorf("%v, %v", cfg, err)
	}
}

func TestWhatDoesNotLoadIsNotWritten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "clusters.yaml")
	if err := os.WriteFile(path, []byte(commented), 0o600); err != nil {
		t.Fatal(err)
	}
	store := open(t, environment(t), truststore.Flags{File: path})
	_, changed, err := store.Edit(t.Context(), func(d *truststore.Document) error {
		_, err := d.AddRule("cluster1", truststore.Rule{MapTo: truststore.MapTo{Same: true}})
		return err
	})
	if data, _ := os.ReadFile(path); changed || cli.ExitCode(err) != cli.CodeBlocked || string(data) != commented {
		t.Errorf("changed %v, %v", changed, err)
	}
	reason := errors.New("changed my mind")
	if _, _, err := store.Edit(t.Context(), func(*truststore.Document) error { return reason }); !errors.Is(err, reason) {
		t.Errorf("error %v", err)
	}
	dry := open(t, environment(t, "--dry-run"), truststore.Flags{File: path})
	doc, changed, err := dry.Edit(t.Context(), adding("cluster2"))
	if data, _ := os.ReadFile(path); err != nil || !changed || len(doc.Clusters()) != 2 || string(data) != commented {
		t.Errorf("a dry run: changed %v, %v\n%s", changed, err, data)
	}
}

// TestAFileChangedMeanwhile: what somebody else writes while we think is kept.
func TestAFileChangedMeanwhile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "clusters.yaml")
	store := open(t, environment(t), truststore.Flags{File: path})
	once := sync.OnceValue(func() error { return os.WriteFile(path, []byte(commented), 0o600) })
	doc, _, err := store.Edit(t.Context(), func(d *truststore.Document) error {
		return errors.Join(once(), d.SetCluster(truststore.Entry{Name: "cluster2"}))
	})
	if err != nil || !slices.Equal(doc.Clusters(), []string{"cluster1", "cluster2"}) {
		t.Errorf("%v", err)
	}
}

func TestARealHub(t *testing.T) {
	t.Parallel()
	cp := controlplane.Start(t)
	edited(t, cp)
	published(t, cp.Client(t))
}

// edited edits the ConfigMap of the hub, from several sides at the same time.
func edited(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, cp.KubeconfigFor(t, "admin", "system:masters"), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := truststore.Flags{ConfigMap: names.HubNamespace + "/" + names.TokenAuthorizer}
	if _, err := flags.Open(environment(t, "--kubeconfig", kubeconfig)); cli.ExitCode(err) != cli.CodeBlocked {
		t.Errorf("a cluster that is no hub: %v", err)
	}
	admin := cp.Client(t)
	installation.Hub(t, admin, manifests.Hub{})
	store := open(t, environment(t, "--kubeconfig", kubeconfig), flags)
	if doc, err := store.Read(t.Context()); err != nil || len(doc.Clusters()) > 0 {
		t.Fatalf("no ConfigMap: %v", err)
	}
	key := client.ObjectKey{Namespace: names.HubNamespace, Name: names.TokenAuthorizer}
	for _, mode := range []string{"client", "server"} {
		dry := open(t, environment(t, "--kubeconfig", kubeconfig, "--dry-run="+mode), flags)
		if _, changed, err := dry.Edit(t.Context(), adding("cluster1")); err != nil || !changed {
			t.Errorf("%s dry run: changed %v, %v", mode, changed, err)
		}
		if err := admin.Get(t.Context(), key, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s dry run: %v", mode, err)
		}
	}

	together(t, store)
	before := configMap(t, admin, key)
	if before.Labels["app"] != names.TokenAuthorizer {
		t.Errorf("labels %v", before.Labels)
	}
	if _, changed, err := store.Edit(t.Context(), adding("cluster1")); err != nil || changed || configMap(t, admin, key).ResourceVersion != before.ResourceVersion {
		t.Errorf("the same again: changed %v, %v", changed, err)
	}
}

// together writes from several sides at the same time.
func together(t *testing.T, store *truststore.Store) {
	t.Helper()
	var want []string
	var group sync.WaitGroup
	errs := make(chan error, 5)
	for i := range cap(errs) {
		name := fmt.Sprintf("cluster%d", i)
		want = append(want, name)
		group.Go(func() {
			_, changed, err := store.Edit(t.Context(), adding(name))
			if err == nil && !changed {
				err = errors.New("nothing had to be written")
			}
			errs <- err
		})
	}
	group.Wait()
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	doc, err := store.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := doc.Clusters()
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func configMap(t *testing.T, c client.Client, key client.ObjectKey) *corev1.ConfigMap {
	t.Helper()
	var cm corev1.ConfigMap
	if err := c.Get(t.Context(), key, &cm); err != nil {
		t.Fatal(err)
	}
	return &cm
}

// published tells whose published keys count.
func published(t *testing.T, admin client.Client) {
	t.Helper()
	publish := func(cluster string) []client.Object {
		return []client.Object{
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: names.IssuerConfigMap}, Data: map[string]string{
				names.IssuerKeyIssuer: "https://" + cluster, names.IssuerKeyJWKS: "{}",
			}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "another"}},
		}
	}
	for cluster, accepted := range map[string]bool{"in": true, "out": false, "new": true} {
		installation.Create(t, admin, append(publish(cluster), &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: cluster}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: accepted},
		})...)
		var live clusterv1.ManagedCluster
		if err := admin.Get(t.Context(), client.ObjectKey{Name: cluster}, &live); err != nil {
			t.Fatal(err)
		}
		for _, condition := range []string{clusterv1.ManagedClusterConditionHubAccepted, clusterv1.ManagedClusterConditionJoined} {
			if cluster == "new" && condition == clusterv1.ManagedClusterConditionJoined {
				continue
			}
			live.Status.Conditions = append(live.Status.Conditions, metav1.Condition{
				Type: condition, Status: metav1.ConditionTrue, Reason: "Test", LastTransitionTime: metav1.Now(),
			})
		}
		if err := admin.Status().Update(t.Context(), &live); err != nil {
			t.Fatal(err)
		}
	}
	installation.Create(t, admin, publish("stranger")...)
	got, err := truststore.Published(t.Context(), admin)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"in": "", "out": "the hub has not accepted the cluster", "new": "the cluster has not joined",
		"stranger": "the namespace is not that of a managed cluster",
	}
	if len(got) != len(want) {
		t.Errorf("%d publications, want %d", len(got), len(want))
	}
	for _, p := range got {
		if why, ok := want[p.Cluster]; !ok || p.Distrusted != why || p.Issuer != "https://"+p.Cluster || string(p.JWKS) != "{}" {
			t.Errorf("%+v", p)
		}
	}
}
