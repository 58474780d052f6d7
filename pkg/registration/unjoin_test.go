package registration_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

// installKlusterlet installs what unjoin looks for on the managed cluster. There is
// no operator; the agent runs in the test.
func (f *eksFleet) installKlusterlet(t *testing.T) (client.Client, *operatorv1.Klusterlet) {
	t.Helper()
	c := f.managed.Client(t)
	operator, err := manifests.RenderKlusterletOperator(manifests.KlusterletOperator{Spec: operatorv1.KlusterletSpec{Namespace: namespace}})
	installation.Some(t, c, operator, err, installation.CRD)
	k := &operatorv1.Klusterlet{
		ObjectMeta: metav1.ObjectMeta{Name: names.KlusterletName},
		Spec: operatorv1.KlusterletSpec{
			ClusterName: cluster,
			RegistrationConfiguration: &operatorv1.RegistrationConfiguration{RegistrationDriver: operatorv1.RegistrationDriver{
				AuthType: "awsirsa",
				AwsIrsa:  &operatorv1.AwsIrsa{HubClusterArn: f.pair.Hub.String(), ManagedClusterArn: f.pair.Managed.String()},
			}},
		},
	}
	installation.Create(t, c, k)
	return c, k
}

// TestUnjoinFromElsewhere unjoins an EKS cluster from a machine without AWS
// credentials: whoever administers the managed cluster can use the identity of its
// agent. What cannot be told to the hub removes nothing.
func TestUnjoinFromElsewhere(t *testing.T) {
	t.Parallel()
	f := newEKSFleet(t)
	f.startAgent(t, f.aws(t))
	hubARN := "--hub-cluster-arn=" + f.pair.Hub.String()
	await.Success(t, patience, "the cluster registers", func(ctx context.Context) error {
		return f.admin.Get(ctx, client.ObjectKeyFromObject(f.object()), f.object())
	})
	f.must(t, "accept", cluster, hubARN, "--wait", "--timeout=90s")
	f.awaitRunning(t)
	managed, klusterlet := f.installKlusterlet(t)

	f.checkDryRuns(t, managed, klusterlet)
	// Neither a role that AWS does not give out nor a hub that is away lets it go.
	stays := func(why string, args ...string) {
		t.Helper()
		code, printed := f.run(t, f.managed, append([]string{"unjoin", cluster, "--yes"}, args...)...)
		text := strings.Join(strings.Fields(printed), " ")
		for _, words := range []string{why, "nothing was removed", "unjoin " + cluster + " --side=managed", "unjoin " + cluster + " --side=hub"} {
			if code != 3 || !strings.Contains(text, words) {
				t.Errorf("it ended with %d, without %q:\n%s", code, words, printed)
			}
		}
		if err := managed.Get(t.Context(), client.ObjectKeyFromObject(klusterlet), klusterlet); err != nil || !klusterlet.DeletionTimestamp.IsZero() {
			t.Errorf("the Klusterlet is gone: %v", err)
		}
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: names.RegistrationAgentServiceAccount(names.KlusterletName)}}
	f.annotate(t, managed, account, `"arn:aws:iam::222222222222:role/other"`)
	stays("AssumeRoleWithWebIdentity")
	f.annotate(t, managed, account, "null")
	f.plane.StopAPIServer(t)
	stays("connection refused")
	f.plane.StartAPIServer(t)
	if !f.get(t).Spec.HubAcceptsClient {
		t.Error("the hub does not accept the cluster any more")
	}

	// A run that could not remove the agent has told the hub, which removes the
	// identity.
	f.finalizers(t, managed, klusterlet, `["test.io/held"]`)
	told := func() bool {
		now := f.get(t)
		return !now.Spec.HubAcceptsClient && now.Annotations[names.AnnotationLeft] != ""
	}
	// On a busy machine the time can be over before the hub is told.
	for limit := 20 * time.Second; ; limit *= 3 {
		code, printed := f.run(t, f.managed, "unjoin", cluster, "--yes", "--timeout="+limit.String())
		if code == 124 && told() {
			break
		}
		if limit > patience {
			t.Fatalf("it ended with %d, and the hub was told: %v\n%s", code, told(), printed)
		}
	}
	f.awaitNoIdentity(t)
	// The next one finds that out without the identity.
	f.finalizers(t, managed, klusterlet, "null")
	managed, klusterlet = f.installKlusterlet(t)
	if code, printed := f.run(t, f.managed, "unjoin", cluster, "--yes", "--wait", "--timeout=90s"); code != 0 || !strings.Contains(printed, "The cluster has left the hub") {
		t.Errorf("it ended with %d:\n%s", code, printed)
	}
	if err := managed.Get(t.Context(), client.ObjectKeyFromObject(klusterlet), klusterlet); !apierrors.IsNotFound(err) {
		t.Errorf("the Klusterlet is there: %v", err)
	}
	f.must(t, "unjoin", cluster, "--side=hub", "--yes", "--wait", "--timeout=90s")
	if err := f.admin.Get(t.Context(), client.ObjectKeyFromObject(f.object()), f.object()); !apierrors.IsNotFound(err) {
		t.Errorf("the ManagedCluster is there: %v", err)
	}
}

// checkDryRuns checks that both dry runs say what would happen, the one of the servers
// with the identity of the agent, and that neither changes anything.
func (f *eksFleet) checkDryRuns(t *testing.T, managed client.Client, klusterlet *operatorv1.Klusterlet) {
	t.Helper()
	state := func() string {
		now := f.get(t)
		if err := managed.Get(t.Context(), client.ObjectKeyFromObject(klusterlet), klusterlet); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(now.Generation, now.Annotations, klusterlet.ResourceVersion)
	}
	before := state()
	for mode, words := range map[string][]string{
		"client": {"on the hub https://127.0.0.1:", "hubAcceptsClient of " + cluster + " set to false (dry run)", "klusterlet (dry run)"},
		"server": {"Reporting the detachment to the hub https://127.0.0.1:", "Removing the agent (server dry run)", "Nothing was removed (server dry run)."},
	} {
		code, printed := f.run(t, f.managed, "unjoin", cluster, "--yes", "--dry-run="+mode)
		for _, word := range words {
			if code != 0 || !strings.Contains(printed, word) {
				t.Errorf("%s: it ended with %d, without %q:\n%s", mode, code, word, printed)
			}
		}
		if after := state(); after != before {
			t.Errorf("%s: before %s\nafter %s", mode, before, after)
		}
	}
}

// annotate sets the role of a ServiceAccount.
func (f *eksFleet) annotate(t *testing.T, c client.Client, account *corev1.ServiceAccount, role string) {
	t.Helper()
	f.patch(t, c, account, fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, identity.AnnotationRole, role))
}

func (f *eksFleet) finalizers(t *testing.T, c client.Client, object client.Object, finalizers string) {
	t.Helper()
	f.patch(t, c, object, fmt.Sprintf(`{"metadata":{"finalizers":%s}}`, finalizers))
}

func (f *eksFleet) patch(t *testing.T, c client.Client, object client.Object, patch string) {
	t.Helper()
	if err := c.Patch(t.Context(), object, client.RawPatch("application/merge-patch+json", []byte(patch))); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
}

// awaitNoIdentity waits until the hub's account has nothing for the cluster.
func (f *eksFleet) awaitNoIdentity(t *testing.T) {
	t.Helper()
	await.Success(t, patience, "the identity is gone", func(context.Context) error {
		if _, left := f.account.Role(f.pair.HubRole().String()); left || len(f.account.AccessEntries(f.pair.Hub.String())) > 0 {
			return errors.New("AWS has it")
		}
		return nil
	})
}
