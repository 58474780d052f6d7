package registration_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/hubspec"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/csr"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

// command runs a command as an administrator of the hub, and returns its exit code
// and what it printed.
func (f *eksFleet) command(t *testing.T, args ...string) (code int, printed string) {
	t.Helper()
	return f.run(t, f.hub, args...)
}

// must runs a command that has to succeed.
func (f *eksFleet) must(t *testing.T, args ...string) string {
	t.Helper()
	code, printed := f.command(t, args...)
	if code != 0 {
		t.Fatalf("%v ended with %d:\n%s", args, code, printed)
	}
	return printed
}

// refuse runs a command that must fail and leave the ManagedCluster as it is.
func (f *eksFleet) refuse(t *testing.T, words string, args ...string) {
	t.Helper()
	before := f.get(t)
	code, printed := f.command(t, args...)
	if code == 0 || !strings.Contains(strings.Join(strings.Fields(printed), " "), words) {
		t.Errorf("%v ended with %d, without %q:\n%s", args, code, words, printed)
	}
	after := f.get(t)
	if before.Spec.HubAcceptsClient != after.Spec.HubAcceptsClient || !names.SameValues(before.Annotations, after.Annotations, identity.Annotations()) {
		t.Errorf("%v was refused and changed the cluster:\n%s", args, printed)
	}
}

func (f *eksFleet) get(t *testing.T) *clusterv1.ManagedCluster {
	t.Helper()
	object := f.object()
	if err := f.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	return object
}

// pendingKey waits for the one request that waits for a decision, and returns the
// fingerprint of its key.
func (f *eksFleet) pendingKey(t *testing.T) string {
	t.Helper()
	var key string
	await.Success(t, patience, "a pending request", func(ctx context.Context) error {
		var list certificatesv1.CertificateSigningRequestList
		if err := f.admin.List(ctx, &list, client.MatchingLabels{names.LabelClusterName: cluster}); err != nil {
			return err
		}
		for i := range list.Items {
			if len(list.Items[i].Status.Conditions) > 0 {
				continue
			}
			request, err := csr.Vet(&list.Items[i])
			key = request.Fingerprint
			return err
		}
		return errors.New("there is none")
	})
	return key
}

// awaitHolder waits until nobody but one subject has the rights of the cluster.
func (f *eksFleet) awaitHolder(t *testing.T, kind, name string) {
	t.Helper()
	await.Success(t, patience, "the rights are of "+name, func(ctx context.Context) error {
		var global rbacv1.ClusterRoleBinding
		if err := f.admin.Get(ctx, client.ObjectKey{Name: names.ManagedClusterClusterRole(cluster)}, &global); err != nil {
			return err
		}
		var work rbacv1.RoleBinding
		if err := f.admin.Get(ctx, client.ObjectKey{Namespace: cluster, Name: names.WorkRoleBinding(cluster)}, &work); err != nil {
			return err
		}
		for _, subjects := range [][]rbacv1.Subject{global.Subjects, work.Subjects} {
			if len(subjects) != 1 || subjects[0].Kind != kind || subjects[0].Name != name {
				return fmt.Errorf("the subjects are %v", subjects)
			}
		}
		return nil
	})
}

// awaitRunning waits until both sides say that the agent works.
func (f *eksFleet) awaitRunning(t *testing.T) {
	t.Helper()
	f.awaitReport(t, agent.Running, "")
	f.awaitCondition(t, clusterv1.ManagedClusterConditionJoined, metav1.ConditionTrue)
	f.awaitCondition(t, clusterv1.ManagedClusterConditionAvailable, metav1.ConditionTrue)
}

// installClusterManager installs the object in which the hub has its ARN. There is no
// operator; the controllers run in the test.
func (f *eksFleet) installClusterManager(t *testing.T) {
	t.Helper()
	operator, err := manifests.RenderHubOperator(manifests.HubOperator{BootstrapToken: "0123456789abcdef"})
	installation.Some(t, f.admin, operator, err, installation.CRD)
	installation.Create(t, f.admin, &operatorv1.ClusterManager{
		ObjectMeta: metav1.ObjectMeta{Name: names.ClusterManagerName},
		Spec: operatorv1.ClusterManagerSpec{RegistrationConfiguration: &operatorv1.RegistrationHubConfiguration{
			RegistrationDrivers: []operatorv1.RegistrationDriverHub{
				{AuthType: operatorv1.CSRAuthType}, hubspec.Spec{Cluster: f.pair.Hub.String()}.Driver(),
			},
		}},
	})
}

// TestChangeOfDriver is a cluster that registers with certificates, then with AWS,
// and then with certificates again: the hub's administrator changes it with accept,
// and it keeps its name and its ManifestWork. Nobody but the administrator decides
// who is next, and what the cluster had before is worthless.
func TestChangeOfDriver(t *testing.T) {
	t.Parallel()
	f := newEKSFleet(t)
	certificates := func(who driver.Identity) driver.Agent {
		return csr.NewAgent(csr.AgentConfig{Identity: who, ExpirationSeconds: 3600, Clock: clock.RealClock{}})
	}
	hubARN := "--hub-cluster-arn=" + f.pair.Hub.String()
	toAWS := []string{"accept", cluster, "--registration-auth=aws-irsa", "--managed-cluster-arn=" + f.pair.Managed.String(), hubARN}

	// It joins with a certificate.
	stop := f.startAgent(t, certificates)
	f.must(t, "accept", cluster, "--fingerprint", f.pendingKey(t), "--wait", "--timeout=90s")
	f.awaitRunning(t)
	f.checkNoIdentity(t)
	work := installation.Work(cluster, "w1")
	if err := f.admin.Create(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	born := f.get(t).UID
	var first rbacv1.ClusterRoleBinding
	if err := f.admin.Get(t.Context(), client.ObjectKey{Name: names.ManagedClusterClusterRole(cluster)}, &first); err != nil {
		t.Fatal(err)
	}
	holder := first.Subjects[0].Name

	// It joins again with AWS. The agent says what to run on the hub, and until then
	// nothing changes there.
	stop()
	stop = f.startAgent(t, f.aws(t))
	f.awaitReport(t, agent.Requested, "kubectl ocm accept --clusters "+cluster+" --registration-auth awsirsa --managed-cluster-arn "+f.pair.Managed.String())
	f.refuse(t, "this needs a confirmation", toAWS...)
	f.refuse(t, "the managed cluster in aws-cn", "accept", cluster, "--registration-auth=awsirsa", "--managed-cluster-arn=arn:aws-cn:eks:cn-north-1:222222222222:cluster/managed-0", hubARN, "--yes")
	f.refuse(t, "is not the ARN of an EKS cluster", "accept", cluster, "--registration-auth=awsirsa", "--managed-cluster-arn=managed-0", hubARN, "--yes")
	f.awaitHolder(t, rbacv1.UserKind, holder)
	for _, dry := range []string{"--dry-run=client", "--dry-run=server"} {
		if printed := f.must(t, append(toAWS, dry)...); !strings.Contains(printed, "trusted role "+f.pair.ManagedRole().Name) {
			t.Errorf("%s does not show what is trusted:\n%s", dry, printed)
		}
	}
	if !names.SameValues(f.get(t).Annotations, nil, identity.Annotations()) {
		t.Error("a dry run changed how the cluster registers")
	}

	printed := f.must(t, append(toAWS, "--yes", "--wait", "--timeout=90s")...)
	for _, shown := range []string{"EKS cluster " + f.pair.Managed.String(), "AWS account 222222222222", "trusted role " + f.pair.ManagedRole().Name} {
		if strings.Count(printed, shown) != 1 {
			t.Errorf("%q is not shown once:\n%s", shown, printed)
		}
	}
	f.awaitHolder(t, rbacv1.GroupKind, names.MappedClusterGroup(cluster))
	f.awaitRunning(t)
	f.checkStored(t)
	f.must(t, "accept", cluster, hubARN) // It is as desired.
	f.refuse(t, "the ARN of the hub's EKS cluster is not known here", "accept", cluster)
	f.installClusterManager(t)
	f.must(t, "accept", cluster)

	// Another cluster with the same identifier is not accepted, and both are named.
	rival := f.object()
	rival.Name = "rival"
	rival.Annotations = map[string]string{identity.AnnotationCluster: f.pair.Managed.String()}
	if err := f.admin.Create(t.Context(), rival); err != nil {
		t.Fatal(err)
	}
	if code, printed := f.command(t, "accept", "rival", hubARN); code != 3 || !strings.Contains(strings.Join(strings.Fields(printed), " "), "cluster rival has the identifier "+f.pair.Identifier()+" of cluster "+cluster) {
		t.Errorf("the rival ended with %d:\n%s", code, printed)
	}
	if err := f.admin.Get(t.Context(), client.ObjectKeyFromObject(rival), rival); err != nil || rival.Spec.HubAcceptsClient {
		t.Errorf("the rival is accepted, or gone: %v", err)
	}

	// Back to certificates. A request alone changes nothing, nor does a choice of its key.
	stop()
	f.startAgent(t, certificates)
	key := f.pendingKey(t)
	f.refuse(t, "a certificate is requested for it with the key "+key, "accept", cluster, hubARN)
	f.refuse(t, "choose the certificate with --registration-auth csr", "accept", cluster, "--fingerprint", key, hubARN)
	f.must(t, "accept", cluster, "--registration-auth=csr", "--fingerprint", key, "--yes", "--wait", "--timeout=90s")
	f.awaitRunning(t)
	await.Success(t, patience, "the condition of the grant is gone", func(context.Context) error {
		if c := apimeta.FindStatusCondition(f.get(t).Status.Conditions, names.ConditionRegistrationGranted); c != nil {
			return fmt.Errorf("it is %+v", c)
		}
		return nil
	})
	f.checkNoIdentity(t)

	if err := f.admin.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil || !work.DeletionTimestamp.IsZero() {
		t.Errorf("the ManifestWork is lost: %v", err)
	}
	if now := f.get(t); now.UID != born {
		t.Error("it is another ManagedCluster")
	}
}
