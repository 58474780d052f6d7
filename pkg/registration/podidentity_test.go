package registration_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/endpointcreds"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws"
)

// podAudience is whom the tokens are for that Pods show the EKS Pod Identity Agent.
const podAudience = "pods.eks.amazonaws.com"

// TestLifeWithPodIdentity is the life of an EKS cluster without an OIDC provider: its
// agent has its role from EKS Pod Identity, whose session tags go on to the role on
// the hub.
func TestLifeWithPodIdentity(t *testing.T) {
	t.Parallel()
	f := newBareEKSFleet(t)
	f.usePodIdentity(t)
	f.startEKSHubAsCreator(t)
	f.startAgent(t, f.withPodIdentity(t, f.podIdentityAgent(t)))

	f.awaitReport(t, agent.Requested, "waiting for a hub administrator to accept")
	f.accept(t, true)
	f.awaitCondition(t, names.ConditionRegistrationGranted, metav1.ConditionTrue)
	f.awaitReport(t, agent.Running, "")
	f.awaitCondition(t, clusterv1.ManagedClusterConditionAvailable, metav1.ConditionTrue)

	f.detach(t)
	f.checkNoIdentity(t)
}

// usePodIdentity replaces the OIDC provider by associations with EKS Pod Identity.
func (f *eksFleet) usePodIdentity(t *testing.T) {
	t.Helper()
	f.podIdentity = true
	f.account.RemoveProvider("arn:aws:iam::" + f.pair.Managed.Account + ":oidc-provider/" + issuer)
	accounts := identity.AgentAccounts(namespace, names.KlusterletName)
	putRole(t, f.account, f.pair.RoleOfAgents(identity.Source{}, accounts))
	cluster := aws.Cluster{ARN: f.pair.Managed.String()}
	for _, name := range accounts.Names {
		cluster.Associations = append(cluster.Associations, aws.Association{Namespace: accounts.Namespace, ServiceAccount: name, RoleARN: f.pair.ManagedRole().String()})
	}
	f.account.AddCluster(t, cluster)
}

// withPodIdentity is the driver of an agent whose Pod has a token for the EKS Pod
// Identity Agent at an address.
func (f *eksFleet) withPodIdentity(t *testing.T, address string) func(driver.Identity) driver.Agent {
	t.Helper()
	token := f.managed.Token(t, namespace, names.RegistrationAgentServiceAccount(names.KlusterletName), authenticationv1.TokenRequestSpec{Audiences: []string{podAudience}})
	return func(who driver.Identity) driver.Agent {
		return awsirsa.NewAgent(awsirsa.AgentConfig{
			Identity: who, Pair: f.pair, Clock: clock.RealClock{},
			Load: func(context.Context, string) (awssdk.Config, error) {
				config := awsConfig(t, f.account)
				config.Credentials = awssdk.NewCredentialsCache(endpointcreds.New(address, func(o *endpointcreds.Options) { o.AuthorizationToken = token }))
				return config, nil
			},
		})
	}
}

// podIdentityAgent serves what the EKS Pod Identity Agent of the managed cluster
// does, and returns its address.
func (f *eksFleet) podIdentityAgent(t *testing.T) string {
	t.Helper()
	cluster := f.managed.Client(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{
			Token: r.Header.Get("Authorization"), Audiences: []string{podAudience},
		}}
		if err := cluster.Create(r.Context(), review); err != nil || !review.Status.Authenticated {
			http.Error(w, "the token is not valid", http.StatusForbidden)
			return
		}
		who := strings.Split(review.Status.User.Username, ":") // system:serviceaccount:NAMESPACE:NAME
		session, err := f.account.PodSession(f.pair.Managed.String(), who[2], who[3])
		if err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{
			"AccessKeyId": session.AccessKeyID, "SecretAccessKey": session.SecretAccessKey, "Token": session.SessionToken,
			"Expiration": session.Expires.UTC().Format(time.RFC3339),
		})
	}))
	t.Cleanup(server.Close)
	return server.URL
}
