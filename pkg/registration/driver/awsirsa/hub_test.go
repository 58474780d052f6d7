package awsirsa_test

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/cloud"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws"
)

// TestForeignRole: a role that the hub did not create is neither changed by a grant
// nor deleted by its revocation.
func TestForeignRole(t *testing.T) {
	t.Parallel()
	e := newEnv(t, aws.API)
	e.addManagedRole(t, "one")
	e.addManagedRole(t, "two")
	plan := e.plan(t, "c1", "one")
	for name, tags := range map[string]map[string]string{
		"without tags":          {},
		"with the cluster tags": tagsOf(e.pair("one").Tags()),
		"of another hub":        {"open-cluster-management.io/hub-cluster-arn": strings.Replace(e.hub.String(), hubRegion, "eu-west-1", 1)},
	} {
		e.addRole(t, plan.Data["role"], e.trust("two"), tags)
		before, _ := e.cloud.Role(plan.Data["role"])
		_, err := e.driver().Grant(t.Context(), plan)
		if err == nil || !strings.Contains(err.Error(), plan.Data["role"]) || e.entry(plan) != nil {
			t.Errorf("%s: %v, %v", name, err, e.entry(plan))
		}
		if err := e.driver().Revoke(t.Context(), plan); err != nil {
			t.Error(err)
		}
		if after, ok := e.cloud.Role(plan.Data["role"]); !ok || after.ID != before.ID || after.Trust != before.Trust || len(after.Tags) != len(tags) {
			t.Errorf("%s: the role is %+v now", name, after)
		}
	}
}

// TestManagedRolePending: until the managed cluster's role exists nothing fails,
// and the user reads what to create and how.
func TestManagedRolePending(t *testing.T) {
	t.Parallel()
	e := newEnv(t, aws.APIAndConfigMap)
	plan := e.plan(t, "c1", "one")
	wait := func(when string) {
		t.Helper()
		progress, err := e.driver().Grant(t.Context(), plan)
		if err != nil || progress.After <= 0 || !strings.Contains(progress.Waiting, managedRole(e, "one")) || !strings.Contains(progress.Waiting, "kubectl ocm aws prerequisites managed") {
			t.Fatalf("%s: %+v, %v", when, progress, err)
		}
	}
	wait("before there is a role")
	e.addManagedRole(t, "one")
	e.grant(t, plan)
	e.cloud.RemoveRole(managedRole(e, "one"))
	wait("after the role went")
	e.addManagedRole(t, "one")
	e.grant(t, plan)
	if missing := append(e.missingRole(t, plan), e.missingEntry(plan)...); len(missing) > 0 {
		t.Error(missing)
	}
}

// TestEntryOfRecreatedRole: EKS lets in the role that an entry was created for, so
// a role that was created again needs a new one.
func TestEntryOfRecreatedRole(t *testing.T) {
	t.Parallel()
	e := newEnv(t, aws.API)
	e.addManagedRole(t, "one")
	plan := e.plan(t, "c1", "one")
	e.grant(t, plan)
	before := e.entry(plan)
	e.recreate(t, plan, func(*aws.Role) {})
	if len(e.missingEntry(plan)) == 0 {
		t.Fatal("the old entry lets the new role in")
	}
	e.grant(t, plan)
	if after := e.entry(plan); after.ARN == before.ARN || len(e.missingEntry(plan)) > 0 {
		t.Errorf("the entry was %+v and is %+v", before, after)
	}
}

// TestPropagation: a role that EKS does not see yet is waited for.
func TestPropagation(t *testing.T) {
	t.Parallel()
	e := newEnv(t, aws.API)
	e.addManagedRole(t, "one")
	e.cloud.Propagation(3, 0)
	plan := e.plan(t, "c1", "one")
	progress, err := e.driver().Grant(t.Context(), plan)
	if err != nil || !strings.Contains(progress.Waiting, plan.Data["role"]) || progress.After <= 0 {
		t.Fatalf("got %+v, %v", progress, err)
	}
	for progress.Waiting != "" && err == nil {
		progress, err = e.driver().Grant(t.Context(), plan)
	}
	if missing := e.missingEntry(plan); err != nil || len(missing) > 0 {
		t.Error(missing, err)
	}
}

// TestRevokesPolicies: a role is deleted with the policies that people gave it.
func TestRevokesPolicies(t *testing.T) {
	t.Parallel()
	e := newEnv(t, aws.API)
	e.addManagedRole(t, "one")
	plan := e.plan(t, "c1", "one")
	e.grant(t, plan)
	e.givePolicies(t, plan)
	if err := e.driver().Revoke(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	if left := e.left(t, plan); len(left) > 0 {
		t.Error(left)
	}
}

// givePolicies has the role of a grant have one policy of each kind.
func (e *env) givePolicies(t *testing.T, plan driver.Grant) {
	t.Helper()
	describe, err := e.pair("one").DescribeHub().Compact()
	if err != nil {
		t.Fatal(err)
	}
	attached := "arn:aws:iam::" + hubAccount + ":policy/describe"
	e.cloud.AddManagedPolicy(t, attached, describe)
	admin, name := e.client(t).iam, strings.Split(plan.Data["role"], "/")[1]
	if _, err := admin.PutRolePolicy(t.Context(), &iam.PutRolePolicyInput{RoleName: &name, PolicyName: new("p"), PolicyDocument: &describe}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.AttachRolePolicy(t.Context(), &iam.AttachRolePolicyInput{RoleName: &name, PolicyArn: &attached}); err != nil {
		t.Fatal(err)
	}
}

// TestLeastPrivilege: what is printed for the hub controller's role allows every
// call, and each action of it is needed.
func TestLeastPrivilege(t *testing.T) {
	t.Parallel()
	e := newEnv(t, aws.APIAndConfigMap)
	drift := e.suite(t).Drift
	plan := e.plan(t, "c1", "one")
	e.grant(t, plan)
	for _, name := range []string{"the role trusts another", "a tag is gone"} {
		drift[name](t, plan)
		e.grant(t, plan)
	}
	e.change(t, plan, func(entry *aws.AccessEntry) { entry.Groups = []string{"others"} })
	e.config.Tags = cloud.Tags{"team": "other"}
	e.grant(t, plan)
	e.givePolicies(t, plan)
	if err := e.driver().Revoke(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, call := range e.cloud.Calls() {
		if !strings.HasSuffix(call.Caller, ":user/hub") {
			continue
		}
		for _, grant := range call.Grants {
			used[grant.Element] = true
			if !grant.Allowed {
				t.Errorf("%s needs %s on %s", call.Operation, grant.Action, grant.Resource)
			}
		}
	}
	for _, statement := range identity.Creator(e.hub, e.pair("one").HubRole(), identity.Source{Issuer: "oidc"}).Access.Statement {
		for _, action := range statement.Action {
			if !used[action] {
				t.Errorf("%s was not needed", action)
			}
		}
	}
}

// TestDeniedCalls: an action that is missing is named with what to allow it on, in the
// same words each time.
func TestDeniedCalls(t *testing.T) {
	t.Parallel()
	e := newEnv(t, aws.API)
	e.addManagedRole(t, "one")
	e.aws = e.awsConfig(t, e.cloud.AddUser(t, "arn:aws:iam::"+hubAccount+":user/weak",
		`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":["eks:*","iam:GetRole","iam:CreateRole"],"Resource":"*"}}`))
	plan := e.plan(t, "c1", "one")
	_, first := e.driver().Grant(t.Context(), plan)
	_, second := e.driver().Grant(t.Context(), plan)
	want := "the AWS call iam:CreateRole on " + plan.Data["role"] + " failed with AccessDenied: allow iam:TagRole on " + plan.Data["role"] +
		` to the hub controller's role; "kubectl ocm aws prerequisites hub" prints the whole policy`
	if first == nil || first.Error() != want || second == nil || second.Error() != want {
		t.Errorf("got  %v\nthen %v\nwant %s", first, second, want)
	}
}

// TestWrongAccount: with credentials of another account nothing is made, and
// nothing is taken for revoked.
func TestWrongAccount(t *testing.T) {
	t.Parallel()
	e := newEnv(t, aws.API)
	e.addManagedRole(t, "one")
	plan := e.plan(t, "c1", "one")
	e.grant(t, plan)
	e.aws = e.awsConfig(t, e.cloud.AddAdmin(t, "aws", "777788889999"))
	e.cloud.AddCluster(t, aws.Cluster{ARN: strings.Replace(e.hub.String(), hubAccount, "777788889999", 1)})
	if err := e.driver().Revoke(t.Context(), plan); err == nil || !strings.Contains(err.Error(), "account") {
		t.Errorf("revoked: %v", err)
	}
	if _, err := e.driver().Grant(t.Context(), plan); err == nil {
		t.Error("granted")
	}
	if len(e.missingEntry(plan)) > 0 || len(e.cloud.Roles("aws", "777788889999")) > 0 {
		t.Error("something changed")
	}
}

// TestMappingMustBeRead: a mapping that EKS does not go by is an error.
func TestMappingMustBeRead(t *testing.T) {
	t.Parallel()
	for mode, mapping := range map[string]awsirsa.MappingMode{aws.API: awsirsa.MapAWSAuth, aws.ConfigMap: awsirsa.MapAccessEntry} {
		e := newEnv(t, mode)
		e.addManagedRole(t, "one")
		plan := e.plan(t, "c1", "one")
		e.config.Mapping = mapping
		_, err := e.driver().Grant(t.Context(), plan)
		if err == nil || !strings.Contains(err.Error(), mode) || !strings.Contains(err.Error(), "--aws-identity-mapping=auto") {
			t.Errorf("%s: %v", mode, err)
		}
	}
}

// TestConcurrentWriters: other writers of aws-auth lose nothing, and nor does the
// driver.
func TestConcurrentWriters(t *testing.T) {
	t.Parallel()
	e := newEnv(t, aws.ConfigMap)
	const clusters, lines = 4, 8
	var plans []driver.Grant
	for i := range clusters {
		name := "c" + strconv.Itoa(i)
		e.addManagedRole(t, name)
		plans = append(plans, e.plan(t, name, name))
	}
	role := func(i int) string {
		return "arn:aws:iam::" + hubAccount + ":role/" + e.hub.Name + "-" + strconv.Itoa(i)
	}
	var writers sync.WaitGroup
	defer writers.Wait()
	for _, plan := range plans {
		writers.Go(func() {
			if progress, err := e.driver().Grant(t.Context(), plan); err != nil || progress.Waiting != "" {
				t.Errorf("grant: %+v, %v", progress, err)
			}
		})
	}
	for i := range lines {
		e.editAWSAuth(t, func(text string) string { return text + "- rolearn: " + role(i) + " # kept\n" })
	}
	writers.Wait()
	for _, plan := range plans {
		if missing := e.missingLine(t, plan); len(missing) > 0 {
			t.Error(missing)
		}
	}
	for i := range lines {
		if strings.Count(e.awsAuth(t), role(i)+" # kept\n") != 1 {
			t.Errorf("the line of %s is gone", role(i))
		}
	}
}

// TestObjection: a cluster with an ARN needs a pattern that matches all of it, one
// without is not this driver's.
func TestObjection(t *testing.T) {
	t.Parallel()
	e := newEnv(t, aws.API)
	one := e.pair("one").Managed.String()
	for _, tc := range []struct {
		patterns    []string
		annotations map[string]string
		want        bool
	}{
		{want: true},
		{annotations: e.register("one")},
		{patterns: []string{one}, annotations: e.register("one"), want: true},
		{patterns: []string{"x", "arn:aws:eks:.*:" + managedAccount + ":cluster/o.*"}, annotations: e.register("one"), want: true},
		{patterns: []string{one[:len(one)-1], one[1:], "", "x|" + one[1:]}, annotations: e.register("one")},
		{patterns: []string{".*"}, annotations: map[string]string{identity.AnnotationCluster: "x"}},
	} {
		var err error
		if e.config.Approved, err = awsirsa.ParsePatterns(tc.patterns); err != nil {
			t.Fatal(err)
		}
		if got := e.driver().Objection(managedCluster("c1", tc.annotations)); (got == "") != tc.want {
			t.Errorf("%v, %v: %q", tc.patterns, tc.annotations, got)
		}
	}
	if _, err := awsirsa.ParsePatterns([]string{"a)|(b"}); err == nil {
		t.Error("an expression that closes the group is taken")
	}
}

// TestOtherSpellings: the ARN may have the other annotations' names, and then needs
// no identifier.
func TestOtherSpellings(t *testing.T) {
	t.Parallel()
	e := newEnv(t, aws.API)
	want := e.plan(t, "c1", "one")
	for _, key := range []string{identity.AnnotationClusterOld, identity.AnnotationClusterBare} {
		got, err := e.driver().Plan(managedCluster("c1", map[string]string{key: e.pair("one").Managed.String()}))
		if err != nil || got == nil || got.Key != want.Key {
			t.Errorf("%s: %+v, %v", key, got, err)
		}
	}
}

func TestParseTags(t *testing.T) {
	t.Parallel()
	if got, err := awsirsa.ParseTags([]string{"a=b", "c:d/e=f g"}); err != nil || len(got) != 2 || got["c:d/e"] != "f g" {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"a", "a=", "=b", "a=b=c", "aws:a=b", "Hub_cluster_name=x", "open-cluster-management.io/hub-cluster-arn=x", strings.Repeat("a", 129) + "=b"} {
		if _, err := awsirsa.ParseTags([]string{bad}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestRequestsAreCounted: each attempt of a call counts by its result, and a
// credential is in no label.
func TestRequestsAreCounted(t *testing.T) {
	t.Parallel()
	e := newEnv(t, aws.API)
	e.addManagedRole(t, "one")
	registry := prometheus.NewPedanticRegistry()
	requests, err := cloud.NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	requests.Count(&e.aws)
	e.aws.Retryer = func() awssdk.Retryer { return awssdk.NopRetryer{} }
	e.cloud.Inject(aws.Fault{Operation: "CreateRole", Kind: aws.Throttled, Times: 1})
	plan := e.plan(t, "c1", "one")
	if _, err := e.driver().Grant(t.Context(), plan); err == nil || !strings.Contains(err.Error(), "AWS throttles the calls") {
		t.Errorf("got %v", err)
	}
	e.grant(t, plan)
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatal(families, err)
	}
	var got []string
	for _, metric := range families[0].GetMetric() {
		var labels []string
		for _, label := range metric.GetLabel() {
			labels = append(labels, label.GetValue())
		}
		got = append(got, strings.Join(labels, " ")+" "+strconv.Itoa(int(metric.GetCounter().GetValue())))
	}
	for _, want := range []string{"CreateRole throttled iam 1", "CreateRole success iam 1", "DescribeCluster success eks 2", "GetRole failure iam 2", "CreateAccessEntry success eks 1"} {
		if !slices.Contains(got, want) {
			t.Errorf("there is no %q in %q", want, got)
		}
	}
}

// TestSessionOfTheHubEndsEarly: AWS ends the session of the hub's controller before
// its time. The controller begins a new one, and does not fail until the old one
// would have ended.
func TestSessionOfTheHubEndsEarly(t *testing.T) {
	t.Parallel()
	e := newEnv(t, aws.API)
	e.addManagedRole(t, "one")
	creator := identity.Creator(e.hub, awsarn.Role{}, identity.Source{Issuer: "oidc"})
	access, err := creator.Access.Compact()
	if err != nil {
		t.Fatal(err)
	}
	const role = "arn:aws:iam::" + hubAccount + ":role/controller"
	key := e.cloud.AddUser(t, "arn:aws:iam::"+hubAccount+":user/node", `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"sts:AssumeRole","Resource":"*"}}`)
	e.cloud.AddRole(t, aws.Role{
		ARN: role, Policies: map[string]string{"access": access},
		Trust: `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::` + hubAccount + `:user/node"},"Action":"sts:AssumeRole"}}`,
	})
	config := e.awsConfig(t, key)
	config.Region = hubRegion
	config.Credentials = awssdk.NewCredentialsCache(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(config), role))
	e.aws = config
	h := e.driver()
	plan := e.plan(t, "c1", "one")
	if progress, err := h.Grant(t.Context(), plan); err != nil || progress.Waiting != "" {
		t.Fatalf("grant: %+v, %v", progress, err)
	}
	e.cloud.Advance(2 * time.Hour)
	if _, err := h.Grant(t.Context(), plan); err == nil || !strings.Contains(err.Error(), "credentials") {
		t.Fatalf("with a session that is over: %v", err)
	}
	if progress, err := h.Grant(t.Context(), plan); err != nil || progress.Waiting != "" {
		t.Errorf("with a new session: %+v, %v", progress, err)
	}
}
