package authenticator_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	ststypes "github.com/aws/aws-sdk-go-v2/service/sts/types"
	"github.com/aws/smithy-go"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws/authenticator"
)

// TestIRSA takes tokens of a real API server's ServiceAccounts through the
// emulator and the real authenticator to another real API server. Each subtest
// has a managed cluster of its own.
func TestIRSA(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, test := range map[string]func(*testing.T, *cluster){
		"accepted":             accepted,
		"not-accepted":         notAccepted,
		"no-tags":              noTags,
		"other-account":        otherServiceAccount,
		"chained":              chained,
		"own-identity":         ownIdentity,
		"tokens":               refusedTokens,
		"deleted-entry":        deletedEntry,
		"recreated-hub-role":   recreatedHubRole,
		"recreated-agent-role": recreatedAgentRole,
		"aws-auth":             awsAuth,
		"isolation":            isolation,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, w.newCluster(t, name))
		})
	}
}

// expectUser waits until the hub takes a token for a user of a cluster's group.
func expectUser(t *testing.T, hub *authenticator.Hub, token, user, group string) {
	t.Helper()
	await.Success(t, patience, "the hub knows "+user, func(ctx context.Context) error {
		got, err := whoAmI(ctx, hub, token)
		if err == nil && (got.Username != user || !slices.Equal(got.Groups, []string{group, "system:authenticated"})) {
			err = fmt.Errorf("got %s of %v", got.Username, got.Groups)
		}
		return err
	})
}

func (c *cluster) expectAccepted(t *testing.T, token string) {
	t.Helper()
	expectUser(t, c.hub, token, c.name, "open-cluster-management:"+c.name)
}

func expectRefused(t *testing.T, what string, hub *authenticator.Hub, token string) {
	t.Helper()
	if got, err := whoAmI(t.Context(), hub, token); !apierrors.IsUnauthorized(err) {
		t.Errorf("%s: got %+v, %v, want unauthorized", what, got, err)
	}
}

// expectCode expects that credentials cannot be had, for a reason.
func expectCode(t *testing.T, what string, config awssdk.Config, want string) {
	t.Helper()
	_, err := config.Credentials.Retrieve(t.Context())
	if api, ok := errors.AsType[smithy.APIError](err); !ok || api.ErrorCode() != want {
		t.Errorf("%s: got %v, want %s", what, err, want)
	}
}

func accepted(t *testing.T, c *cluster) {
	c.accept(t)
	held := mustToken(t, c.assume(t))
	c.expectAccepted(t, held)
	got, err := whoAmI(t.Context(), c.hub, held)
	if err != nil || len(got.Extra["canonicalArn"]) != 1 || got.Extra["canonicalArn"][0] != c.hubRole {
		t.Errorf("got %+v, %v", got.Extra, err)
	}
	if length := len(held); length > 4096 || length < 1000 {
		t.Errorf("the token has %d bytes: real ones have more than a thousand, and 4096 at most", length)
	}
}

func notAccepted(t *testing.T, c *cluster) {
	expectCode(t, "before the hub role exists", c.assume(t), "AccessDenied")
	c.createHubRole(t)
	expectRefused(t, "before the access entry exists", c.hub, mustToken(t, c.assume(t)))
}

func noTags(t *testing.T, c *cluster) {
	c.tags = nil
	c.cloud.RemoveRole(c.managedRole)
	c.addManagedRole(t)
	c.accept(t)
	expectCode(t, "a role without tags", c.assume(t), "AccessDenied")
}

func otherServiceAccount(t *testing.T, c *cluster) {
	expectCode(t, "another ServiceAccount", c.identity(t, "other"), "AccessDenied")
	config := newConfig(t, c.cloud, region)
	made := c.managed.Token(t, namespace, account, tokenFor("https://hub"))
	config.Credentials = stscreds.NewWebIdentityRoleProvider(newSTS(config), c.managedRole, text(made))
	expectCode(t, "a token for another audience", config, "InvalidIdentityToken")
}

func chained(t *testing.T, c *cluster) {
	c.accept(t)
	expectCode(t, "more than an hour", c.assume(t, func(o *stscreds.AssumeRoleOptions) { o.Duration = 61 * time.Minute }), "ValidationError")
	expectCode(t, "session tags", c.assume(t, func(o *stscreds.AssumeRoleOptions) {
		o.Tags = []ststypes.Tag{{Key: new("a"), Value: new("b")}}
	}), "AccessDenied")
	_, err := iam.NewFromConfig(c.admin).CreateRole(t.Context(), &iam.CreateRoleInput{
		RoleName: new(strings.Repeat("a", 65)), AssumeRolePolicyDocument: new("{}"),
	})
	if api, ok := errors.AsType[smithy.APIError](err); !ok || api.ErrorCode() != "ValidationError" {
		t.Errorf("a name of 65 characters: %v", err)
	}
}

// ownIdentity shows that the managed cluster's role by itself is nobody on the hub.
func ownIdentity(t *testing.T, c *cluster) {
	c.accept(t)
	expectRefused(t, "the managed cluster's role", c.hub, mustToken(t, c.identity(t, account)))
}

func refusedTokens(t *testing.T, c *cluster) {
	c.accept(t)
	config := c.assume(t)
	c.expectAccepted(t, mustToken(t, config))
	for what, change := range map[string]func(*request){
		"for another cluster":    func(r *request) { r.cluster = "hub-1" },
		"16 minutes old":         func(r *request) { r.signed = r.signed.Add(-16 * time.Minute) },
		"for another host":       func(r *request) { r.host = "example.com" },
		"for another service":    func(r *request) { r.host = "iam.amazonaws.com" },
		"for another partition":  func(r *request) { r.host = "sts.cn-north-1.amazonaws.com.cn" },
		"signed for one region":  func(r *request) { r.host = "sts.eu-west-1.amazonaws.com" },
		"for the host of a fake": func(r *request) { r.host = "127.0.0.1" },
	} {
		made, err := token(t, config, change)
		if err != nil {
			t.Fatal(err)
		}
		expectRefused(t, what, c.hub, made)
	}
	expectRefused(t, "no token of EKS", c.hub, "k8s-aws-v1.aHR0cHM6Ly9leGFtcGxlLmNvbQ")
	get, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://example.com/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if response, err := config.HTTPClient.Do(get); err == nil {
		_ = response.Body.Close()
		t.Errorf("another host is reached through the proxy: %s", response.Status)
	}
}

// deletedEntry shows how long the API server goes on accepting a token: as long
// as it remembers the webhook's answer.
func deletedEntry(t *testing.T, c *cluster) {
	c.accept(t)
	config := c.assume(t)
	held := mustToken(t, config)
	c.expectAccepted(t, held)
	c.deleteEntry(t)
	await.Condition(t, patience, "the hub refuses the token", func(ctx context.Context) (bool, error) {
		_, err := whoAmI(ctx, c.hub, held)
		return apierrors.IsUnauthorized(err), nil
	})
	expectRefused(t, "a new token", c.hub, mustToken(t, config))
}

// recreatedHubRole shows that an access entry is of the role that there was.
func recreatedHubRole(t *testing.T, c *cluster) {
	c.accept(t)
	c.expectAccepted(t, mustToken(t, c.assume(t)))
	c.deleteHubRole(t)
	c.createHubRole(t)
	held := c.assume(t)
	expectRefused(t, "the new role with the old entry", c.hub, mustToken(t, held))
	c.deleteEntry(t)
	c.createEntry(t)
	c.expectAccepted(t, mustToken(t, held))
}

// recreatedAgentRole shows that a trust policy is of the role that there was.
func recreatedAgentRole(t *testing.T, c *cluster) {
	c.accept(t)
	c.expectAccepted(t, mustToken(t, c.assume(t)))
	c.cloud.RemoveRole(c.managedRole)
	c.addManagedRole(t)
	expectCode(t, "the new role with the old trust policy", c.assume(t), "AccessDenied")
	c.deleteHubRole(t)
	c.deleteEntry(t)
	c.accept(t)
	c.expectAccepted(t, mustToken(t, c.assume(t)))
}

// awsAuth shows that the ConfigMap maps roles that have no access entry, groups
// of system: included.
func awsAuth(t *testing.T, c *cluster) {
	c.createHubRole(t)
	held := mustToken(t, c.assume(t))
	expectRefused(t, "before it is mapped", c.hub, held)
	mapped := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "aws-auth"},
		Data: map[string]string{"mapRoles": fmt.Sprintf("- rolearn: %s\n  username: from-aws-auth\n  groups: [\"system:open-cluster-management:%s\"]\n",
			c.hubRole, c.name)},
	}
	if err := c.hub.Client(t).Create(t.Context(), mapped); err != nil {
		t.Fatal(err)
	}
	expectUser(t, c.hub, held, "from-aws-auth", "system:open-cluster-management:"+c.name)
	c.createEntry(t)
	await.Success(t, patience, "the access entry wins", func(ctx context.Context) error {
		made, err := token(t, c.assume(t), nil)
		if err != nil {
			return err
		}
		got, err := whoAmI(ctx, c.hub, made)
		if err == nil && got.Username != c.name {
			err = fmt.Errorf("got %s", got.Username)
		}
		return err
	})
}

// isolation shows that one cluster's identity cannot have another's role.
func isolation(t *testing.T, c *cluster) {
	c.accept(t)
	other := c.newCluster(t, "isolation-other")
	other.accept(t)
	config := c.identity(t, account)
	config.Credentials = stscreds.NewAssumeRoleProvider(newSTS(config), other.hubRole)
	expectCode(t, "another cluster's hub role", config, "AccessDenied")
}

// TestRestart shows that the API server finds the authenticator again after it
// was away, under another port.
func TestRestart(t *testing.T) {
	t.Parallel()
	cloud := aws.Start(t)
	hub := authenticator.StartHub(t, cloud, aws.Cluster{ARN: "arn:aws-cn:eks:cn-north-1:" + hubAccount + ":cluster/hub-0"})
	role := cloud.AddRole(t, aws.Role{
		ARN:   "arn:aws-cn:iam::" + hubAccount + ":role/ocm-hub-china",
		Trust: `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":"*","Action":"sts:AssumeRole"}}`,
	})
	china := cluster{world: &world{cloud: cloud, hub: hub, admin: newConfig(t, cloud, "cn-north-1")}, name: "china", hubRole: role.ARN}
	key := cloud.AddAdmin(t, "aws-cn", hubAccount)
	china.admin.Credentials = credentials.NewStaticCredentialsProvider(key.AccessKeyID, key.SecretAccessKey, "")
	china.createEntry(t)
	config := newConfig(t, cloud, "cn-north-1")
	session := cloud.Session(t, role.ARN, "agent", nil)
	config.Credentials = credentials.NewStaticCredentialsProvider(session.AccessKeyID, session.SecretAccessKey, session.SessionToken)
	// Tokens that are signed in the same second are the same, and the API server
	// remembers the answer.
	made := func(age time.Duration) string {
		made, err := token(t, config, func(r *request) {
			r.host, r.signed = "sts.cn-north-1.amazonaws.com.cn", r.signed.Add(-age)
		})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	china.expectAccepted(t, made(0))
	hub.Authenticator.Stop()
	if got, err := whoAmI(t.Context(), hub, made(time.Minute)); err == nil {
		t.Errorf("without an authenticator the hub knows %s", got.Username)
	}
	hub.Authenticator.Start(t)
	china.expectAccepted(t, made(2*time.Minute))
}
