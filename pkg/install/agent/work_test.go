//go:build linux

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installer"
)

// newJoined returns a managed cluster on which join ran, and no operator.
func newJoined(t *testing.T, work agent.Work) agent.Runner {
	t.Helper()
	r := agent.Runner{Runner: installer.New(t, controlplane.Lease(t))}
	crds, err := manifests.RenderKlusterletCRDs(manifests.Klusterlet{Name: names.KlusterletName, Version: "0.0.0"})
	installation.Some(t, r.Client, crds, err, installation.CRD)
	joinWith(t, r, work)
	return r
}

// joinWith runs join and returns its warnings about the work agent.
func joinWith(t *testing.T, r agent.Runner, work agent.Work) string {
	t.Helper()
	outcome, err := r.Install(t.Context(), agent.Values{ClusterName: "cluster1", Bootstrap: []byte("{}"), Work: work}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var warnings []string
	for _, finding := range outcome.Warnings {
		if finding.Check == install.CheckWork {
			warnings = append(warnings, finding.Message)
		}
	}
	return strings.Join(warnings, "\n")
}

// installed returns the Klusterlet.
func installed(t *testing.T, r agent.Runner) *operatorv1.Klusterlet {
	t.Helper()
	k, err := r.Klusterlet(t.Context())
	if err != nil || k == nil {
		t.Fatalf("klusterlet: %v, %v", k, err)
	}
	return k
}

// TestWorkAgentIsKeptAsChosen: join without flags changes neither whether there is a
// work agent nor what it may do.
func TestWorkAgentIsKeptAsChosen(t *testing.T) {
	t.Parallel()
	r := newJoined(t, agent.Work{})
	expect := func(agent, permissions string) {
		t.Helper()
		got := installed(t, r).Annotations
		if got[names.AnnotationWorkAgent] != agent || got[names.AnnotationWorkPermissions] != permissions {
			t.Errorf("got %v", got)
		}
	}
	expect("", "admin")
	joinWith(t, r, agent.Work{Enabled: new(false)})
	expect("false", "admin")
	joinWith(t, r, agent.Work{})
	expect("false", "admin")
	joinWith(t, r, agent.Work{Enabled: new(true), Permissions: names.WorkPermissionsView})
	expect("true", "view")
	joinWith(t, r, agent.Work{})
	expect("true", "view")
}

// TestWorkWarnings: join says what a change of the work agent leaves behind, and which
// ClusterRole is missing.
func TestWorkWarnings(t *testing.T) {
	t.Parallel()
	r := newJoined(t, agent.Work{})
	other := &operatorv1.Klusterlet{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	if err := r.Client.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	installer.ApplyWork(t, r.Client, "others", string(other.UID))
	if got := joinWith(t, r, agent.Work{Enabled: new(false)}); got != "" {
		t.Errorf("without works: %s", got)
	}
	installer.ApplyWork(t, r.Client, "app", string(installed(t, r).UID))
	got := joinWith(t, r, agent.Work{Enabled: new(false)})
	if !strings.Contains(got, "still on this cluster: app: without a work agent") || strings.Contains(got, "others") {
		t.Errorf("with works: %q", got)
	}
	if got := joinWith(t, r, agent.Work{Enabled: new(true), Permissions: "nosuch"}); !strings.Contains(got, `"nosuch" does not exist`) {
		t.Errorf("with a missing ClusterRole: %q", got)
	}
	// cluster-admin is there on every cluster.
	if got := joinWith(t, r, agent.Work{Permissions: "cluster-admin"}); got != "" {
		t.Errorf("with a ClusterRole: %q", got)
	}
}

// TestJoinWaitsForTheWorkAgent: the work agent, which starts last, is waited for unless
// it is left out.
func TestJoinWaitsForTheWorkAgent(t *testing.T) {
	t.Parallel()
	r := newJoined(t, agent.Work{})
	report(t, r)
	deployment := workDeployment()
	if err := r.Client.Create(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	// Each line that a user sees is followed by what it waits for.
	steps := map[string]func(){
		"has no pods yet": func() {
			deployment.Spec.Replicas = new(int32(1))
			update(t, r.Client, deployment)
			deployment.Status.ObservedGeneration = deployment.Generation
			updateStatus(t, r.Client, deployment)
		},
		"0 of 1 replicas are updated": func() {
			deployment.Status.Replicas, deployment.Status.UpdatedReplicas = 1, 1
			updateStatus(t, r.Client, deployment)
		},
		"0 of 1 replicas are available": func() {
			deployment.Status.ReadyReplicas, deployment.Status.AvailableReplicas = 1, 1
			updateStatus(t, r.Client, deployment)
		},
	}
	storeCredential(t, r, "https://hub.example.com")
	said := watchProgress(r)
	done := make(chan error, 1)
	go func() { done <- r.AwaitJoined(t.Context()) }()
	for {
		select {
		case err := <-done:
			if err != nil || len(steps) > 0 {
				t.Errorf("ended with %v before %d steps", err, len(steps))
			}
			joinWith(t, r, agent.Work{Enabled: new(false)})
			if err := client.IgnoreNotFound(r.Client.Delete(t.Context(), deployment)); err != nil {
				t.Fatal(err)
			}
			report(t, r)
			if err := r.AwaitJoined(t.Context()); err != nil {
				t.Errorf("left out: %v", err)
			}
			return
		case line := <-said:
			for text, next := range steps {
				if strings.Contains(line, text) {
					delete(steps, text)
					next()
				}
			}
		}
	}
}

// TestJoinWithFewPermissions: what cannot be read is not claimed to be missing, or to be
// another cluster's.
func TestJoinWithFewPermissions(t *testing.T) {
	t.Parallel()
	cp := controlplane.Lease(t)
	crds, err := manifests.RenderKlusterletCRDs(manifests.Klusterlet{Name: names.KlusterletName, Version: "0.0.0"})
	admin := agent.Runner{Runner: installer.New(t, cp)}
	installation.Some(t, admin.Client, crds, err, installation.CRD)
	joinWith(t, admin, agent.Work{})
	r := agent.Runner{Runner: installer.New(t, cp)}
	config := rest.CopyConfig(cp.Config(t))
	config.Impersonate = rest.ImpersonationConfig{UserName: "few", Groups: []string{"system:authenticated"}}
	if r.Client, err = client.NewWithWatch(config, client.Options{Scheme: scheme.New()}); err != nil {
		t.Fatal(err)
	}
	installation.Create(t, admin.Client,
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "few"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"list"}},
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "few"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "few"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "few"}},
		})
	onHub := &clusterv1.ManagedCluster{Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}, Status: clusterv1.ManagedClusterStatus{
		Conditions: []metav1.Condition{{Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionTrue}},
	}}
	r.Skip = nil
	await.Success(t, await.Patience, "the answer", func(ctx context.Context) error {
		_, err := r.Install(ctx, agent.Values{ClusterName: "cluster1", Bootstrap: []byte("{}"), Work: agent.Work{Permissions: "nosuch"}}, onHub)
		if err == nil || !strings.Contains(err.Error(), "klusterlets") {
			return fmt.Errorf("the permission is not named: %w", err)
		}
		if strings.Contains(err.Error(), "is taken") || strings.Contains(err.Error(), "does not exist") {
			t.Errorf("claims what it cannot know: %v", err)
		}
		return nil
	})
}

// TestJoinWaitsForThisHub: what the agent has of a hub that it leaves, the key included,
// is no success at the next one.
func TestJoinWaitsForThisHub(t *testing.T) {
	t.Parallel()
	r := newJoined(t, agent.Work{Enabled: new(false)})
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	r.Clock = clock
	report(t, r)
	storeCredential(t, r, "https://first.example.com")
	again := agent.Values{ClusterName: "cluster1", Bootstrap: installer.EncodeHub(t, "https://second.example.com")}
	if _, err := r.Install(t.Context(), again, nil); err != nil {
		t.Fatal(err)
	}
	report(t, r)
	for what, wait := range map[string]func() error{
		"the credential": func() error { return r.AwaitJoined(t.Context()) },
		"the key":        func() error { _, err := r.AwaitKey(t.Context()); return err },
	} {
		storeCredential(t, r, "https://first.example.com")
		done := make(chan error, 1)
		go func() { done <- wait() }()
		for range 3 {
			await.Condition(t, await.Patience, "it waits", func(context.Context) (bool, error) { return clock.HasWaiters() || len(done) > 0, nil })
			clock.Step(time.Minute)
		}
		if len(done) > 0 {
			t.Errorf("%s: that of the first hub counts: %v", what, <-done)
			continue
		}
		storeCredential(t, r, "https://second.example.com")
		await.Condition(t, await.Patience, "the wait ends", func(context.Context) (bool, error) {
			clock.Step(time.Minute)
			return len(done) > 0, nil
		})
		if err := <-done; err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestOwnKey: the key that counts is the one that the agent asks the present hub for, and
// the last one that was seen when it asks for none.
func TestOwnKey(t *testing.T) {
	t.Parallel()
	r := newJoined(t, agent.Work{Enabled: new(false)})
	ask := func(server string) string {
		t.Helper()
		key, encoded, err := pemutil.NewKey()
		if err != nil {
			t.Fatal(err)
		}
		hub, err := kubeconfig.ParseHub(installer.EncodeHub(t, server))
		if err != nil {
			t.Fatal(err)
		}
		storeSecret(t, r, names.PendingCredentialSecret, map[string][]byte{names.KeyPendingHub: []byte(hub.Digest()), names.KeyTLSKey: encoded})
		fingerprint, err := pemutil.KeyFingerprint(key.Public())
		if err != nil {
			t.Fatal(err)
		}
		return fingerprint
	}
	join := func(server string) {
		t.Helper()
		if _, err := r.Install(t.Context(), agent.Values{ClusterName: "cluster1", Bootstrap: installer.EncodeHub(t, server)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	own := r.OwnKey("known")
	expect := func(when, want string) {
		t.Helper()
		if got, err := own(t.Context()); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", when, got, err, want)
		}
	}
	join("https://first.example.com")
	expect("without a request", "known")
	first := ask("https://first.example.com")
	expect("with a request", first)
	join("https://second.example.com")
	own = r.OwnKey("")
	expect("with a request of another address", "")
	second := ask("https://second.example.com")
	expect("with a request of this address", second)
	third := ask("https://second.example.com")
	expect("with a newer key", third)
	ask("https://first.example.com")
	expect("once the key is replaced", third)
}

// storeCredential stores a credential of a hub, as the agent does.
func storeCredential(t *testing.T, r agent.Runner, server string) {
	t.Helper()
	storeSecret(t, r, names.HubKubeconfigSecret, map[string][]byte{names.KeyKubeconfig: installer.EncodeHub(t, server), names.KeyTLSCert: []byte("certificate")})
}

// storeSecret stores a Secret of the agent.
func storeSecret(t *testing.T, r agent.Runner, name string, data map[string][]byte) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: names.AgentNamespace, Name: name}, Data: data}
	err := r.Client.Create(t.Context(), secret)
	if apierrors.IsAlreadyExists(err) {
		err = r.Client.Update(t.Context(), secret)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// watchProgress returns the lines that the steps of r print from now on.
func watchProgress(r agent.Runner) <-chan string {
	said := make(chan string, 100)
	r.Step = func(ctx context.Context, _ string, fn func(context.Context, install.Say) error) error {
		return fn(ctx, func(format string, args ...any) { said <- fmt.Sprintf(format, args...) })
	}
	return said
}

// report is what the operator reports of a cluster that the hub has accepted.
func report(t *testing.T, r agent.Runner) {
	t.Helper()
	k := installed(t, r)
	k.Status.ObservedGeneration = k.Generation
	k.Status.Conditions = nil
	for kind, status := range map[string]metav1.ConditionStatus{"Applied": metav1.ConditionTrue, names.ConditionHubConnectionDegraded: metav1.ConditionFalse} {
		k.Status.Conditions = append(k.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: "Test", LastTransitionTime: metav1.Now()})
	}
	updateStatus(t, r.Client, k)
}

// workDeployment is the Deployment of the work agent before the hub has accepted the
// cluster. Its pods are nobody's matter here.
func workDeployment() *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: names.AgentNamespace, Name: names.WorkAgentDeployment(names.KlusterletName)}}
	labels := map[string]string{"app": d.Name}
	d.Spec.Replicas = new(int32(0))
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "agent", Image: "example/kubectl-ocm:v1"}}
	return d
}

func update(t *testing.T, c client.Client, obj client.Object) {
	t.Helper()
	anyVersion(obj)
	if err := c.Update(t.Context(), obj); err != nil {
		t.Fatal(errors.Join(errors.New("update"), err))
	}
}

func updateStatus(t *testing.T, c client.Client, obj client.Object) {
	t.Helper()
	anyVersion(obj)
	if err := c.Status().Update(t.Context(), obj); err != nil {
		t.Fatal(errors.Join(errors.New("update the status"), err))
	}
}

// anyVersion has a Deployment written over what the Deployment controller of the control
// plane has written since it was read.
func anyVersion(obj client.Object) {
	if _, ok := obj.(*appsv1.Deployment); ok {
		obj.SetResourceVersion("")
	}
}
