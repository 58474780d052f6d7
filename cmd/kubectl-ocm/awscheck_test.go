//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

const (
	hubAccount     = "111111111111"
	managedAccount = "222222222222"
	hubARN         = "arn:aws:eks:eu-west-1:" + hubAccount + ":cluster/hub"
	managedARN     = "arn:aws:eks:us-east-2:" + managedAccount + ":cluster/managed-0"
	hubIssuer      = "oidc.eks.eu-west-1.amazonaws.com/id/0123456789ABCDEF"
	managedIssuer  = "oidc.eks.us-east-2.amazonaws.com/id/FEDCBA9876543210"
	creatorRole    = "arn:aws:iam::" + hubAccount + ":role/hub_managed-cluster-identity-creator"
	identifier     = "71529d64a9e65efa39be4a029b3a8518"
	agentRole      = "arn:aws:iam::" + managedAccount + ":role/ocm-managed-cluster-" + identifier
	clusterRole    = "arn:aws:iam::" + hubAccount + ":role/ocm-hub-" + identifier
)

// account is an AWS that the real program reaches over a proxy.
type account struct {
	cloud *aws.Cloud
	// env is the program's environment without credentials.
	env []string
}

func newAccount(t *testing.T) *account {
	t.Helper()
	dir := t.TempDir()
	a := &account{cloud: aws.Start(t)}
	a.env = append(a.cloud.Environment(), "PATH="+os.Getenv("PATH"), "HOME="+dir, "KUBECONFIG="+filepath.Join(dir, "none"))
	a.cloud.AddCluster(t, aws.Cluster{ARN: hubARN, Issuer: "https://" + hubIssuer})
	a.cloud.AddCluster(t, aws.Cluster{ARN: managedARN, Issuer: "https://" + managedIssuer})
	a.cloud.AddProvider(t, "aws", hubAccount, "https://"+hubIssuer, []byte(`{"keys":[]}`))
	a.cloud.AddProvider(t, "aws", managedAccount, "https://"+managedIssuer, []byte(`{"keys":[]}`))
	return a
}

// side are the arguments of one side.
func side(name string, more ...string) []string {
	args := []string{name, "--hub-cluster-arn", hubARN}
	if name == "managed" {
		args = append(args, "--managed-cluster-arn", managedARN)
	}
	if len(more) > 0 {
		return append(args, more...)
	}
	return append(args, "--oidc-provider", map[string]string{"hub": hubIssuer, "managed": managedIssuer}[name])
}

// run runs the program and returns its output and exit code.
func (a *account) run(t *testing.T, env, args []string) (stdout, stderr string, code int) {
	t.Helper()
	var out, talk strings.Builder
	cmd := exec.CommandContext(t.Context(), "kubectl-ocm", args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = slices.Concat(a.env, env), &out, &talk
	if err := cmd.Run(); err != nil {
		ended, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			t.Fatal(err)
		}
		code = ended.ExitCode()
	}
	return out.String(), talk.String(), code
}

// role is a role as the program prints it.
type role struct {
	ARN                       string
	TrustPolicy, AccessPolicy json.RawMessage
	Tags                      []struct{ Key, Value string }
}

// printed is the role of a side that a user is told to create.
func (a *account) printed(t *testing.T, side []string) aws.Role {
	t.Helper()
	out, talk, code := a.run(t, nil, append(append([]string{"aws", "prerequisites"}, side...), "-o", "json"))
	var list struct{ Items []role }
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != 0 || len(list.Items) != 1 {
		t.Fatalf("code %d, %v: %s%s", code, err, out, talk)
	}
	one := list.Items[0]
	made := aws.Role{ARN: one.ARN, Trust: string(one.TrustPolicy), Tags: map[string]string{}, Policies: map[string]string{"open-cluster-management": string(one.AccessPolicy)}}
	for _, tag := range one.Tags {
		made.Tags[tag.Key] = tag.Value
	}
	return made
}

// result is a check in the report.
type result struct{ Name, Status, Message, Try string }

// report is what a check command prints.
type report struct {
	OK     bool
	Checks []result
	code   int
}

// check runs a check command with credentials.
func (a *account) check(t *testing.T, key aws.Credentials, side []string, more ...string) report {
	t.Helper()
	out, talk, code := a.run(t, key.Environment(), slices.Concat([]string{"aws", "check"}, side, more, []string{"-o", "json"}))
	r := report{code: code}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("code %d, %v: %s%s", code, err, out, talk)
	}
	if want := map[bool]int{true: 0, false: 3}[r.OK]; code != want {
		t.Errorf("the report says ok: %v, and the exit code is %d", r.OK, code)
	}
	return r
}

// expect compares one check, and fails the test if others are not ok or skipped.
func (r report) expect(t *testing.T, name, status string, words ...string) {
	t.Helper()
	for _, c := range r.Checks {
		if c.Name != name {
			if c.Status != "ok" && c.Status != "skipped" {
				t.Errorf("%s: %+v", name, c)
			}
			continue
		}
		if c.Status != status {
			t.Errorf("got %+v, want %s", c, status)
		}
		for _, word := range words {
			if !strings.Contains(c.Message+"\n"+c.Try, word) {
				t.Errorf("%s: %q is not in %q, %q", name, word, c.Message, c.Try)
			}
		}
		return
	}
	t.Errorf("there is no check %q in %+v", name, r.Checks)
}

// allOK fails the test unless all checks but the named ones are ok.
func (r report) allOK(t *testing.T, skipped ...string) {
	t.Helper()
	for _, c := range r.Checks {
		if want := map[bool]string{false: "ok", true: "skipped"}[slices.Contains(skipped, c.Name)]; c.Status != want {
			t.Errorf("got %+v, want %s", c, want)
		}
	}
}

const (
	stepWho       = "AWS accepts the credentials"
	stepCluster   = "the EKS cluster exists"
	stepIssuer    = "the OIDC issuer is the cluster's"
	stepProvider  = "the account has the OIDC provider"
	stepRole      = "the role exists"
	stepTrust     = "the role's trust policy is right"
	stepAccess    = "the role's access policy is right"
	stepTags      = "the role's tags are right"
	stepGranted   = "the hub made a role for the cluster"
	stepMapped    = "the hub's role is mapped to its group"
	stepRoles     = "no role is orphaned"
	stepEntries   = "no access entry is orphaned"
	stepLines     = "no line of aws-auth is orphaned"
	allowsAll     = `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"*","Resource":"*"}}`
	anyoneAssumes = `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":"*","Action":"sts:AssumeRole"}}`
)

// TestCheckManaged: what the program prints passes its own check, and each
// difference is reported with the call, the ARN and the command that corrects it.
func TestCheckManaged(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	key := a.cloud.AddAdmin(t, "aws", managedAccount)
	managed := side("managed")

	a.check(t, key, managed).expect(t, stepRole, "failed", "there is no role "+agentRole+" (iam:GetRole)",
		"create it as printed by: kubectl ocm aws prerequisites managed --hub-cluster-arn="+hubARN, "--managed-cluster-arn="+managedARN, "-o cli")

	good := a.printed(t, managed)
	a.cloud.AddRole(t, good)
	const foreign, attached = "arn:aws:iam::aws:policy/ReadOnlyAccess", "arn:aws:iam::" + managedAccount + ":policy/access"
	a.cloud.AddManagedPolicy(t, foreign, allowsAll)
	a.cloud.AddManagedPolicy(t, attached, good.Policies["open-cluster-management"])
	a.check(t, key, managed).allOK(t, stepGranted, stepMapped)

	for name, c := range map[string]struct {
		change func(*aws.Role)
		step   string
		status string
		words  []string
	}{
		"trust": {
			func(r *aws.Role) {
				r.Trust = strings.Replace(r.Trust, "klusterlet-work-sa", "default", 1)
			}, stepTrust, "failed",
			[]string{
				"the trust policy of " + agentRole + " differs (iam:GetRole): ", "system:serviceaccount:open-cluster-management-agent:default",
				"aws iam update-assume-role-policy --role-name ocm-managed-cluster-" + identifier + " --policy-document '{",
			},
		},
		"spelling": {
			func(r *aws.Role) {
				r.Trust = strings.Replace(r.Trust, `"Effect": "Allow"`, `"Sid": "Agent", "Effect": "Allow"`, 1)
				r.Policies = map[string]string{"other": r.Policies["open-cluster-management"]}
			}, stepAccess, "ok", []string{"it is the policy other of the role"},
		},
		"access": {
			func(r *aws.Role) {
				r.Policies = map[string]string{"open-cluster-management": strings.ReplaceAll(good.Policies["open-cluster-management"], identifier, "x")}
			}, stepAccess, "failed",
			[]string{
				"the policy open-cluster-management of " + agentRole + " differs (iam:GetRolePolicy): ", clusterRole,
				"aws iam put-role-policy --policy-name open-cluster-management --role-name ocm-managed-cluster-" + identifier,
			},
		},
		"no access": {
			func(r *aws.Role) { r.Policies = nil }, stepAccess, "failed",
			[]string{"the access policy of " + agentRole + " differs (iam:ListRolePolicies): the role has no policy"},
		},
		"other access": {
			func(r *aws.Role) { r.Policies = map[string]string{"mine": allowsAll} },
			stepAccess, "warning",
			[]string{"whether these allow as much was not checked: mine"},
		},
		"attached access": {
			func(r *aws.Role) {
				r.Policies["open-cluster-management"], r.Attached = allowsAll, []string{foreign, attached}
			}, stepAccess, "ok", []string{"it is the policy " + attached + ", which is attached to the role"},
		},
		"other attached access": {
			func(r *aws.Role) { r.Policies, r.Attached = nil, []string{foreign} },
			stepAccess, "warning",
			[]string{"no policy of the role is the printed one", "whether these allow as much was not checked: " + foreign},
		},
		"tags": {
			func(r *aws.Role) { r.Tags["hub_cluster_name"] = "other"; delete(r.Tags, "managed_cluster_name") }, stepTags, "failed",
			[]string{
				`hub_cluster_name is "other", and must be "hub"`, `managed_cluster_name is "", and must be "managed-0"`,
				"aws iam tag-role --role-name ocm-managed-cluster-" + identifier + " --tags Key=hub_cluster_name,Value=hub Key=managed_cluster_name,Value=managed-0",
			},
		},
	} {
		changed := a.printed(t, managed)
		c.change(&changed)
		a.cloud.AddRole(t, changed)
		got := a.check(t, key, managed)
		t.Log(name)
		got.expect(t, c.step, c.status, c.words...)
	}
	a.cloud.AddRole(t, good)

	provider := "arn:aws:iam::" + managedAccount + ":oidc-provider/" + managedIssuer
	a.cloud.RemoveProvider(provider)
	a.check(t, key, managed).expect(t, stepProvider, "failed", "there is no OIDC provider "+provider+" (iam:GetOpenIDConnectProvider)",
		"aws iam create-open-id-connect-provider --url https://"+managedIssuer+" --client-id-list sts.amazonaws.com")
	a.cloud.AddProvider(t, "aws", managedAccount, "https://"+managedIssuer, []byte(`{"keys":[]}`), "other")
	a.check(t, key, managed).expect(t, stepProvider, "failed", "does not take tokens for sts.amazonaws.com",
		"aws iam add-client-id-to-open-id-connect-provider --open-id-connect-provider-arn "+provider+" --client-id sts.amazonaws.com")
	a.cloud.AddProvider(t, "aws", managedAccount, "https://"+managedIssuer, []byte(`{"keys":[]}`))

	a.cloud.AddCluster(t, aws.Cluster{ARN: managedARN, Issuer: "https://oidc.eks.us-east-2.amazonaws.com/id/OTHER"})
	a.check(t, key, managed).expect(t, stepIssuer, "failed", "the issuer of "+managedARN+" is oidc.eks.us-east-2.amazonaws.com/id/OTHER",
		"give --oidc-provider oidc.eks.us-east-2.amazonaws.com/id/OTHER")
	missing := []string{"managed", "--hub-cluster-arn", hubARN, "--managed-cluster-arn", managedARN + "x", "--oidc-provider", managedIssuer}
	a.cloud.AddRole(t, a.printed(t, missing))
	a.check(t, key, missing).expect(t, stepCluster, "failed", "there is no EKS cluster "+managedARN+"x (eks:DescribeCluster)",
		"aws eks list-clusters --region us-east-2")
}

// TestCheckPodIdentity: agents without an OIDC provider need associations.
func TestCheckPodIdentity(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	key := a.cloud.AddAdmin(t, "aws", managedAccount)
	managed := side("managed", "--pod-identity")
	a.cloud.AddRole(t, a.printed(t, managed))
	associate := func(roles ...string) {
		cluster := aws.Cluster{ARN: managedARN}
		for i, r := range roles {
			cluster.Associations = append(cluster.Associations, aws.Association{
				Namespace: "open-cluster-management-agent", ServiceAccount: []string{"klusterlet-registration-sa", "klusterlet-work-sa"}[i], RoleARN: r,
			})
		}
		a.cloud.AddCluster(t, cluster)
	}
	const work = "EKS Pod Identity gives the role to klusterlet-work-sa"
	associate(agentRole, agentRole)
	a.check(t, key, managed).allOK(t, stepGranted, stepMapped)
	associate(agentRole)
	a.check(t, key, managed).expect(t, work, "failed", "has no association for the ServiceAccount open-cluster-management-agent/klusterlet-work-sa",
		"aws eks create-pod-identity-association --region us-east-2 --cluster-name managed-0 --namespace open-cluster-management-agent "+
			"--service-account klusterlet-work-sa --role-arn "+agentRole)
	associate(agentRole, creatorRole)
	a.check(t, key, managed).expect(t, work, "failed", "gives "+creatorRole+" to the ServiceAccount",
		"aws eks update-pod-identity-association --region us-east-2 --cluster-name managed-0 --association-id a-1 --role-arn "+agentRole)
}

// TestCheckAccepted: with credentials of the hub's account, the command checks what
// the hub made.
func TestCheckAccepted(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	key := a.cloud.AddAdmin(t, "aws", hubAccount)
	managed := side("managed")
	agents := a.printed(t, managed)
	a.cloud.AddRole(t, agents)
	made := aws.Role{ARN: clusterRole, Tags: map[string]string{"open-cluster-management.io/hub-cluster-arn": hubARN}}
	conditions := map[string]string{}
	for tag, value := range agents.Tags {
		made.Tags[tag], conditions["aws:PrincipalTag/"+tag] = value, value
	}
	equals, err := json.Marshal(conditions)
	if err != nil {
		t.Fatal(err)
	}
	made.Trust = fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":%q},"Action":["sts:AssumeRole"],"Condition":{"StringEquals":%s}}]}`,
		agentRole, equals)
	a.check(t, key, managed).expect(t, stepGranted, "warning", "there is no role "+clusterRole+" (iam:GetRole)", "on the hub: kubectl ocm accept NAME")

	id := a.cloud.AddRole(t, made).ID
	a.check(t, key, managed).expect(t, stepMapped, "warning", clusterRole+" has no access entry (eks:DescribeAccessEntry)", "aws-auth may map it")
	hub := aws.Cluster{ARN: hubARN, AuthenticationMode: aws.API}
	a.cloud.AddCluster(t, hub)
	a.check(t, key, managed).expect(t, stepMapped, "failed", clusterRole+" has no access entry (eks:DescribeAccessEntry)", "check cluster NAME")

	entry := aws.AccessEntry{PrincipalARN: clusterRole, Username: "open-cluster-management:m", Groups: []string{"open-cluster-management:m"}}
	a.cloud.AddAccessEntry(t, hubARN, entry)
	a.check(t, key, managed).expect(t, stepMapped, "failed", "of an earlier role of that name (eks:DescribeAccessEntry)")
	entry.Tags = map[string]string{"open-cluster-management.io/role-id": id}
	a.cloud.AddAccessEntry(t, hubARN, entry)
	r := a.check(t, key, managed)
	r.allOK(t, stepCluster, stepIssuer, stepProvider, stepRole, stepTrust, stepAccess, stepTags)
	r.expect(t, stepMapped, "ok", clusterRole+" is the ManagedCluster m")
	entry.Groups = []string{"admins"}
	a.cloud.AddAccessEntry(t, hubARN, entry)
	a.check(t, key, managed).expect(t, stepMapped, "failed", `to the user "open-cluster-management:m" and the groups ["admins"]`)

	a.cloud.AddCluster(t, aws.Cluster{ARN: hubARN, AuthenticationMode: aws.ConfigMap})
	a.check(t, key, managed).expect(t, stepMapped, "skipped", "CONFIG_MAP")

	// The managed cluster's role was deleted and created: IAM keeps the old one's ID.
	a.cloud.RemoveRole(agentRole)
	a.cloud.AddRole(t, agents)
	a.check(t, key, managed).expect(t, stepGranted, "failed", "the trust policy or the tags of "+clusterRole+" differ (iam:GetRole)", `Statement.Principal.AWS is "AROA`)
	delete(made.Tags, "open-cluster-management.io/hub-cluster-arn")
	a.cloud.AddRole(t, made)
	a.check(t, key, managed).expect(t, stepGranted, "failed", "does not use it", "aws iam tag-role --role-name ocm-hub-"+identifier)
}

// TestCheckNeeds: the policies in the documentation are enough for the checks, and
// without any of their actions a check is unknown, and names the action.
func TestCheckNeeds(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	policies := documentedPolicies(t)
	for name, c := range map[string]struct {
		account string
		side    []string
		skipped []string
	}{
		"hub":     {hubAccount, side("hub"), []string{stepRoles, stepEntries, stepLines}},
		"managed": {managedAccount, side("managed"), []string{stepGranted, stepMapped}},
	} {
		made := a.printed(t, c.side)
		attached := "arn:aws:iam::" + c.account + ":policy/access"
		a.cloud.AddManagedPolicy(t, attached, made.Policies["open-cluster-management"])
		made.Policies, made.Attached = map[string]string{"other": allowsAll}, []string{attached}
		a.cloud.AddRole(t, made)
		document := policies[name]
		a.cloud.ForgetCalls()
		a.check(t, a.cloud.AddUser(t, "arn:aws:iam::"+c.account+":user/all", document.text(t, "")), c.side).allOK(t, c.skipped...)
		used := map[string]bool{}
		for _, call := range a.cloud.Calls() {
			for _, grant := range call.Grants {
				used[grant.Element] = true
			}
		}
		for _, action := range document.actions() {
			if strings.Contains(action, "PodIdentity") || (name == "hub" && action == "eks:DescribeAccessEntry") {
				continue // Other cases of the check need them.
			}
			if !used[action] {
				t.Errorf("%s: the action %s was not needed", name, action)
			}
			r := a.check(t, a.cloud.AddUser(t, "arn:aws:iam::"+c.account+":user/most", document.text(t, action)), c.side)
			at := slices.IndexFunc(r.Checks, func(c result) bool { return c.Status == "unknown" })
			if at < 0 || !strings.Contains(r.Checks[at].Message, "AWS does not allow "+action+" on arn:aws:") ||
				!strings.Contains(r.Checks[at].Message, " to arn:aws:iam::"+c.account+":user/most") || !strings.HasPrefix(r.Checks[at].Try, "allow "+action+" on arn:aws:") {
				t.Errorf("%s: without %s: %+v", name, action, r.Checks)
			}
		}
	}
}

// policyDocument is a policy of the documentation.
type policyDocument struct {
	Version   string
	Statement []struct {
		Effect   string
		Action   []string
		Resource any
	}
}

// documentedPolicies are the policies of docs/guides/aws.md for the checks, by side.
func documentedPolicies(t *testing.T) map[string]policyDocument {
	t.Helper()
	data, err := os.ReadFile("../../docs/guides/aws.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(data), "\n## Checking\n")
	policies := map[string]policyDocument{}
	for _, name := range []string{"hub", "managed"} {
		var document policyDocument
		_, rest, _ := strings.Cut(section, "```json\n")
		text, after, _ := strings.Cut(rest, "```")
		if err := json.Unmarshal([]byte(text), &document); err != nil {
			t.Fatalf("the policy of %s: %v", name, err)
		}
		policies[name], section = document, after
	}
	return policies
}

func (p policyDocument) actions() []string {
	var all []string
	for _, s := range p.Statement {
		all = append(all, s.Action...)
	}
	return all
}

// text is the policy without one action.
func (p policyDocument) text(t *testing.T, without string) string {
	t.Helper()
	left := p
	left.Statement = nil
	for _, s := range p.Statement {
		s.Action = slices.DeleteFunc(slices.Clone(s.Action), func(a string) bool { return a == without })
		if len(s.Action) > 0 {
			left.Statement = append(left.Statement, s)
		}
	}
	text, err := json.Marshal(left)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestCheckWho: credentials that cannot be used, or not for this.
func TestCheckWho(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	managed := side("managed")
	a.check(t, a.cloud.AddAdmin(t, "aws", "333333333333"), managed).expect(t, stepWho, "failed",
		"the credentials are of account 333333333333: arn:aws:iam::333333333333:root (sts:GetCallerIdentity)",
		"choose credentials of account "+managedAccount+" or "+hubAccount)
	a.check(t, aws.Credentials{AccessKeyID: "AKIANOBODY", SecretAccessKey: "x"}, managed).expect(t, stepWho, "failed", "AWS does not accept the credentials: sts:GetCallerIdentity failed with InvalidClientTokenId", "AWS_PROFILE")
	a.check(t, aws.Credentials{}, managed).expect(t, stepWho, "failed", "no AWS credential was found", "log in to AWS")
	noProxy := *a
	noProxy.env = append(slices.Clone(a.env), "HTTPS_PROXY=http://127.0.0.1:1")
	noProxy.check(t, a.cloud.AddAdmin(t, "aws", managedAccount), managed).expect(t, stepWho, "failed",
		"AWS did not answer sts:GetCallerIdentity: connection refused", "check the network and the proxy settings")
	for _, endpoint := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_IAM", "AWS_ENDPOINT_URL_EKS", "AWS_ENDPOINT_URL_STS"} {
		a.cloud.ForgetCalls()
		env := append(a.cloud.AddAdmin(t, "aws", managedAccount).Environment(), endpoint+"=https://example.com")
		if out, talk, code := a.run(t, env, append([]string{"aws", "check"}, managed...)); code != 1 || out != "" ||
			!strings.Contains(talk, "overrides the endpoint of") || len(a.cloud.Calls()) > 0 || len(a.cloud.RefusedHosts()) > 0 {
			t.Errorf("%s: code %d: %s%s", endpoint, code, out, talk)
		}
	}
}

// TestSilence: an AWS that takes requests and never answers ends the commands with
// what they waited for, and with the exit code of a time that is over.
func TestSilence(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	env := a.cloud.AddAdmin(t, "aws", managedAccount).Environment()
	all := a.cloud.Inject(aws.Fault{Kind: aws.Silent})
	expect := func(stdout string, code int, words ...string) {
		t.Helper()
		for _, word := range words {
			if code != 124 || !strings.Contains(strings.Join(strings.Fields(stdout), " "), word) {
				t.Errorf("code %d, %q is not in:\n%s", code, word, stdout)
			}
		}
	}
	check := append([]string{"aws", "check"}, side("managed")...)
	out, _, code := a.run(t, env, append(check, "--timeout", "1s"))
	expect(out, code, "AWS did not answer in time: sts:GetCallerIdentity in us-east-2 try: ", "or allow more time with --timeout", "needs: "+stepWho)
	_, talk, code := a.run(t, env, []string{"aws", "get-token", "--cluster-name", "hub", "--region", "eu-west-1", "--role-arn", clusterRole, "--timeout", "1"})
	expect(talk, code, "AWS did not answer in time: sts in eu-west-1, asked for a session of "+clusterRole, "Try: check the network and the proxy settings")
	all.Heal()

	a.cloud.Inject(aws.Fault{Operation: "GetRole", Kind: aws.Silent})
	for timeout := time.Second; ; timeout *= 2 {
		if out, _, code = a.run(t, env, append(check, "--timeout", timeout.String())); strings.Contains(out, "iam:GetRole") || timeout > time.Minute {
			break // What is before is answered in time, even on a busy machine.
		}
	}
	expect(out, code, "AWS did not answer in time: iam:GetRole on "+agentRole, "unknown the hub made a role for the cluster the command ended before this check")
}

// TestCheckOrphans: roles and access entries of clusters that the hub does not have
// are found on all pages, with the commands that remove them; nothing is said of
// those of other hubs, and nothing is compared with another hub.
func TestCheckOrphans(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	cp := controlplane.Lease(t)
	file := filepath.Join(t.TempDir(), "hub.kubeconfig")
	if err := os.WriteFile(file, cp.Kubeconfig(t, "hub"), 0o600); err != nil {
		t.Fatal(err)
	}
	atHub := []string{"--kubeconfig", file}
	key := a.cloud.AddAdmin(t, "aws", hubAccount)
	hub := side("hub")
	a.cloud.AddRole(t, a.printed(t, hub))
	a.cloud.AddCluster(t, aws.Cluster{ARN: hubARN, Issuer: "https://" + hubIssuer, CA: []byte("another")})
	a.check(t, key, hub).expect(t, stepRoles, "skipped", "which of 0 (iam:ListRoles) are of clusters is unknown", "kubeconfig")
	a.check(t, key, hub, atHub...).expect(t, stepRoles, "skipped", "whose CA is not that of "+hubARN)
	a.cloud.AddCluster(t, aws.Cluster{ARN: hubARN, Issuer: "https://" + hubIssuer, CA: cp.CAData})
	a.check(t, key, hub, atHub...).expect(t, stepRoles, "skipped", "is not a hub")

	recorded := hubObjects(t, cp.Client(t))
	// The CronJob of the examples may read what the check compares with.
	a.check(t, key, hub, append(atHub, "--as", "system:serviceaccount:open-cluster-management-hub:nobody")...).
		expect(t, stepRoles, "skipped", "permission is missing")
	installation.Apply(t, cp.Client(t), "ocm.test", exampleObjects(t))
	a.check(t, key, hub, append(atHub, "--as", "system:serviceaccount:open-cluster-management-hub:aws-check")...).allOK(t)
	a.check(t, key, hub, atHub...).allOK(t)

	const prefix = "arn:aws:iam::" + hubAccount + ":role/"
	// Roles of other names fill the first pages.
	for i := range 150 {
		name := fmt.Sprintf("%sa-%03d", prefix, i)
		a.cloud.AddRole(t, aws.Role{ARN: name, Trust: anyoneAssumes})
		a.cloud.AddAccessEntry(t, hubARN, aws.AccessEntry{PrincipalARN: name})
	}
	tags := func(hub string) map[string]string {
		return map[string]string{"open-cluster-management.io/hub-cluster-arn": hub}
	}
	for name, hub := range map[string]string{
		"ocm-hub-" + identifier: hubARN, "ocm-hub-orphan": hubARN, recorded: hubARN,
		"ocm-hub-others": "arn:aws:eks:us-west-2:" + hubAccount + ":cluster/hub", "ocm-hub-untagged": "",
	} {
		a.cloud.AddRole(t, aws.Role{ARN: prefix + name, Trust: anyoneAssumes, Tags: tags(hub)})
	}
	a.cloud.AddAccessEntry(t, hubARN, aws.AccessEntry{PrincipalARN: clusterRole})
	r := a.check(t, key, hub, atHub...)
	r.expect(t, stepRoles, "failed", prefix+"ocm-hub-orphan", "aws iam delete-role --role-name ocm-hub-orphan")
	if text := fmt.Sprint(r.Checks); strings.Contains(text, "others") || strings.Contains(text, "untagged") || strings.Contains(text, identifier) {
		t.Errorf("got %s", text)
	}
	a.cloud.AddAccessEntry(t, hubARN, aws.AccessEntry{PrincipalARN: prefix + "ocm-hub-orphan"})
	a.cloud.RemoveRole(prefix + "ocm-hub-orphan")
	a.check(t, key, hub, atHub...).expect(t, stepEntries, "failed", prefix+"ocm-hub-orphan",
		"aws eks delete-access-entry --region eu-west-1 --cluster-name hub --principal-arn "+prefix+"ocm-hub-orphan")
	if _, there := a.cloud.Role(prefix + "ocm-hub-others"); !there || len(a.cloud.AccessEntries(hubARN)) != 152 {
		t.Error("the check removed something")
	}
	denied := a.cloud.AddUser(t, "arn:aws:iam::"+hubAccount+":user/few", documentedPolicies(t)["hub"].text(t, "iam:ListRoles"))
	if got := a.check(t, denied, hub, atHub...); got.code != 3 || !strings.Contains(fmt.Sprint(got.Checks), "AWS does not allow iam:ListRoles on") {
		t.Errorf("got %+v", got)
	}
}

// TestCheckOrphanedLines: lines of aws-auth for roles of clusters that the hub does
// not accept are found, whether the role exists or not, and no others are mentioned.
func TestCheckOrphanedLines(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	cp := controlplane.Lease(t)
	file := filepath.Join(t.TempDir(), "hub.kubeconfig")
	if err := os.WriteFile(file, cp.Kubeconfig(t, "hub"), 0o600); err != nil {
		t.Fatal(err)
	}
	atHub := []string{"--kubeconfig", file}
	key := a.cloud.AddAdmin(t, "aws", hubAccount)
	hub := side("hub")
	a.cloud.AddRole(t, a.printed(t, hub))
	cluster := aws.Cluster{ARN: hubARN, Issuer: "https://" + hubIssuer, CA: cp.CAData, AuthenticationMode: aws.ConfigMap}
	a.cloud.AddCluster(t, cluster)
	admin := cp.Client(t)
	recorded := hubObjects(t, admin)
	a.check(t, key, hub, atHub...).expect(t, stepLines, "ok", "none of 0")

	const prefix = "arn:aws:iam::" + hubAccount + ":role/"
	denied := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{
		Name: "denied", Annotations: map[string]string{identity.AnnotationCluster: managedARN + "-denied"},
	}}
	installation.Create(t, admin, denied)
	left := "ocm-hub-" + identifierOf(t, managedARN+"-denied")
	tags := map[string]string{"open-cluster-management.io/hub-cluster-arn": hubARN}
	a.cloud.AddRole(t, aws.Role{ARN: prefix + "ocm-hub-" + identifier, Trust: anyoneAssumes, Tags: tags})
	a.cloud.AddRole(t, aws.Role{ARN: prefix + "ocm-hub-others", Trust: anyoneAssumes})
	var lines strings.Builder
	for _, role := range []string{
		prefix + "nodes", prefix + recorded, prefix + "ocm-hub-" + identifier, prefix + "ocm-hub-gone", prefix + "ocm-hub-others", prefix + left,
		"arn:aws:iam::333333333333:role/ocm-hub-away", "no-role",
	} {
		_, _ = fmt.Fprintf(&lines, "- rolearn: %s\n  username: u\n  groups: [g]\n", role)
	}
	auth := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "aws-auth"}, Data: map[string]string{"mapRoles": lines.String()}}
	installation.Create(t, admin, auth)
	r := a.check(t, key, hub, atHub...)
	r.expect(t, stepLines, "failed", "2 of 7 (ConfigMap kube-system/aws-auth) have no accepted ManagedCluster on the hub, line by line:",
		prefix+"ocm-hub-gone", prefix+left, "kubectl -n kube-system edit configmap aws-auth --kubeconfig "+file)
	text := fmt.Sprint(r.Checks)
	for _, foreign := range []string{"nodes", recorded, identifier, "others", "away", "no-role"} {
		if strings.Contains(text, foreign) {
			t.Errorf("%q is in %s", foreign, text)
		}
	}
	installation.Apply(t, admin, "ocm.test", exampleObjects(t))
	example := append(atHub, "--as", "system:serviceaccount:open-cluster-management-hub:aws-check")
	a.check(t, key, hub, example...).expect(t, stepLines, "failed")
	if err := admin.Delete(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "open-cluster-management:aws-check"}}); err != nil {
		t.Fatal(err)
	}
	await.Condition(t, time.Minute, "the permission to read aws-auth is gone", func(context.Context) (bool, error) {
		r = a.check(t, key, hub, example...)
		return slices.ContainsFunc(r.Checks, func(c result) bool { return c.Name == stepLines && c.Status == "unknown" }), nil
	})
	r.expect(t, stepLines, "unknown", "permission is missing", "aws-auth")

	auth.Data["mapRoles"] = "no list"
	if err := admin.Update(t.Context(), auth); err != nil {
		t.Fatal(err)
	}
	a.check(t, key, hub, atHub...).expect(t, stepLines, "failed", "mapRoles is not a list of mappings")
	cluster.AuthenticationMode = aws.API
	a.cloud.AddCluster(t, cluster)
	a.check(t, key, hub, atHub...).expect(t, stepLines, "skipped", "EKS does not read aws-auth with the authenticationMode API")
}

// identifierOf is the identifier of the roles of a managed EKS cluster.
func identifierOf(t *testing.T, managed string) string {
	t.Helper()
	hub, err := awsarn.ParseCluster(hubARN)
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := awsarn.ParseCluster(managed)
	if err != nil {
		t.Fatal(err)
	}
	return identity.Pair{Hub: hub, Managed: cluster}.Identifier()
}

// exampleObjects are those of the example that looks for orphans regularly.
func exampleObjects(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile("../../examples/aws-orphans/cronjob.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for text := range strings.SplitSeq(string(data), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	return objects
}

// hubObjects makes a cluster a hub with a ManagedCluster, and with the record of a
// grant to another that is gone. It returns the name of the role in the record.
func hubObjects(t *testing.T, admin client.Client) string {
	t.Helper()
	installation.Hub(t, admin, manifests.Hub{})
	hub, err := awsarn.ParseCluster(hubARN)
	if err != nil {
		t.Fatal(err)
	}
	pair := identity.Pair{Hub: hub, Managed: hub}
	pair.Managed.Name = "gone"
	text, err := yaml.Marshal(driver.Grant{Cluster: "gone", Key: pair.Identifier(), Data: map[string]string{
		"hubCluster": hubARN, "managedCluster": pair.Managed.String(), "role": pair.HubRole().String(),
	}})
	if err != nil {
		t.Fatal(err)
	}
	installation.Create(t, admin,
		&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{
			Name: "m", Annotations: map[string]string{identity.AnnotationCluster: managedARN},
		}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}},
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: names.HubNamespace, Name: "registration-grant-awsirsa-gone",
				Labels: map[string]string{names.LabelClusterName: "gone", names.LabelGrant: "awsirsa"},
			},
			Data: map[string]string{"grant.yaml": string(text)},
		})
	return pair.HubRole().Name
}
