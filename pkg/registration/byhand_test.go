package registration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws"
)

// newFleetWithoutRole starts a fleet whose hub controller has the role in its
// annotation that nobody has created in AWS.
func newFleetWithoutRole(t *testing.T) *eksFleet {
	t.Helper()
	f := newBareEKSFleet(t)
	config := awsConfig(t, f.account)
	token := f.hub.Token(t, "default", "default", authenticationv1.TokenRequestSpec{Audiences: []string{aws.Audience}})
	role, err := identity.CreatorRole(f.pair.Hub)
	if err != nil {
		t.Fatal(err)
	}
	f.startEKSHub(t, awssdk.NewCredentialsCache(stscreds.NewWebIdentityRoleProvider(sts.NewFromConfig(config), role.String(), webIdentity(token))))
	return f
}

// TestAcceptWithOwnCredentials is a hub whose controller has no role in AWS: who
// accepts a cluster makes the identity, with what the printed policy allows, and who
// denies it removes it. A run that stopped half-way is completed by the next.
func TestAcceptWithOwnCredentials(t *testing.T) {
	t.Parallel()
	f := newFleetWithoutRole(t)
	f.installClusterManager(t)
	f.startAgent(t, f.aws(t))
	await.Success(t, patience, "the cluster registers", func(ctx context.Context) error {
		return f.admin.Get(ctx, client.ObjectKeyFromObject(f.object()), f.object())
	})
	const user = "arn:aws:iam::111111111111:user/admin"
	admin := f.account.AddUser(t, user, f.policy).Environment()
	lesser := f.account.AddUser(t, "arn:aws:iam::111111111111:user/lesser", strings.ReplaceAll(f.policy, "eks:CreateAccessEntry", "eks:ListAccessEntries")).Environment()
	stranger := f.account.AddUser(t, "arn:aws:iam::222222222222:user/stranger", f.policy).Environment()
	accept := []string{"accept", cluster, "--aws-credentials=own"}
	ends := func(who []string, want int, words string, args ...string) {
		t.Helper()
		code, printed := f.runAs(t, who, f.hub, args...)
		if code != want || !strings.Contains(strings.Join(strings.Fields(printed), " "), words) {
			t.Errorf("%v ended with %d, want %d and %q:\n%s", args, code, want, words, printed)
		}
	}

	// Who is not known, or is of another account, changes nothing.
	ends(nil, 3, "no AWS credential was found", accept...)
	ends(stranger, 3, "the credentials are of account 222222222222", accept...)
	ends(admin, 0, "Using your AWS credentials: "+user, append(accept, "--dry-run=server")...)
	if f.get(t).Spec.HubAcceptsClient {
		t.Fatal("the cluster is accepted")
	}
	f.checkNoIdentity(t)

	// The hub says that it cannot, and accept how it can be done.
	ends(nil, 1, "grant it with your own, with --aws-credentials own", "accept", cluster)
	ends(lesser, 3, "AWS does not allow eks:CreateAccessEntry", accept...)
	if _, made := f.account.Role(f.pair.HubRole().String()); !made {
		t.Error("the first step was not taken, so that nothing is left to complete")
	}
	ends(admin, 0, "AWS identity granted with your credentials, "+user, append(accept, "--wait", "--timeout=90s")...)
	f.awaitRunning(t)
	f.awaitReason(t, names.ReasonGrantedByHand)
	ends(nil, 0, user+" granted the identity "+f.pair.Identifier()+"; the hub can neither verify nor repair the grant", "accept", cluster)

	// Somebody removes the role, and the next run makes it again.
	f.account.RemoveRole(f.pair.HubRole().String())
	ends(admin, 0, "AWS identity granted", accept...)
	if _, made := f.account.Role(f.pair.HubRole().String()); !made {
		t.Error("the role is gone")
	}

	ends(lesser, 0, "it was revoked with your credentials", "accept", cluster, "--deny", "--yes", "--aws-credentials=own")
	f.checkNoIdentity(t)
	f.awaitReason(t, names.ReasonRevoked)
	if slices.Contains(f.get(t).Finalizers, names.FinalizerGrants) {
		t.Error("the hub still waits to revoke")
	}

	// A cluster that leaves is held until its identity is revoked.
	ends(admin, 0, "AWS identity granted", append(accept, "--wait", "--timeout=90s")...)
	if err := f.admin.Delete(t.Context(), f.object()); err != nil {
		t.Fatal(err)
	}
	f.awaitReason(t, names.ReasonRevokeFailed)
	ends(admin, 0, "it was revoked with your credentials", "accept", cluster, "--deny", "--yes", "--aws-credentials=own")
	await.Success(t, patience, "the ManagedCluster is gone", func(ctx context.Context) error {
		err := f.admin.Get(ctx, client.ObjectKeyFromObject(f.object()), f.object())
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is there"), err)
	})
	f.checkNoIdentity(t)
}

// TestOwnCredentialsConverge has AWS fail once at each call of a grant and of a
// revocation, for longer than a client tries: the command goes on by itself.
func TestOwnCredentialsConverge(t *testing.T) {
	t.Parallel()
	f := newFleetWithoutRole(t)
	f.installClusterManager(t)
	f.startAgent(t, f.aws(t))
	await.Success(t, patience, "the cluster registers", func(ctx context.Context) error {
		return f.admin.Get(ctx, client.ObjectKeyFromObject(f.object()), f.object())
	})
	admin := f.account.AddUser(t, "arn:aws:iam::111111111111:user/admin", f.policy).Environment()
	run := func(args ...string) {
		t.Helper()
		if code, printed := f.runAs(t, admin, f.hub, append(args, "--aws-credentials=own", "--timeout=90s")...); code != 0 {
			t.Errorf("%v ended with %d:\n%s", args, code, printed)
		}
	}
	for _, operation := range []string{"DescribeCluster", "GetRole", "CreateRole", "CreateAccessEntry"} {
		f.account.Inject(aws.Fault{Operation: operation, Kind: aws.Throttled, Times: 3})
	}
	run("accept", cluster, "--wait")
	f.awaitRunning(t)
	for _, operation := range []string{"DeleteAccessEntry", "DeleteRole"} {
		f.account.Inject(aws.Fault{Operation: operation, Kind: aws.Throttled, Times: 3})
	}
	run("accept", cluster, "--deny", "--yes")
	f.checkNoIdentity(t)
}

// awaitReason waits until the hub reports on the AWS identity of the cluster.
func (f *eksFleet) awaitReason(t *testing.T, reason string) {
	t.Helper()
	var last *metav1.Condition
	await.Success(t, patience, "the reason "+reason, func(ctx context.Context) error {
		var now clusterv1.ManagedCluster
		if err := f.admin.Get(ctx, client.ObjectKeyFromObject(f.object()), &now); err != nil {
			return err
		}
		last = apimeta.FindStatusCondition(now.Status.Conditions, names.ConditionRegistrationGranted)
		if last == nil || last.Reason != reason {
			return fmt.Errorf("it is %+v", last)
		}
		return nil
	})
}
