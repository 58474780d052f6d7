package awsirsa_test

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/drivertest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws"
)

// TestHubWithAccessEntries: the driver does on a hub with access entries what every
// driver must.
func TestHubWithAccessEntries(t *testing.T) {
	t.Parallel()
	drivertest.RunGranter(t, func(t *testing.T) drivertest.GranterSuite {
		t.Helper()
		e := newEnv(t, aws.APIAndConfigMap)
		suite := e.suite(t)
		suite.Drift["the access entry is gone"] = func(t *testing.T, plan driver.Grant) {
			t.Helper()
			e.change(t, plan, func(c *aws.AccessEntry) { *c = aws.AccessEntry{} })
		}
		suite.Drift["the access entry is for others"] = func(t *testing.T, plan driver.Grant) {
			t.Helper()
			e.change(t, plan, func(c *aws.AccessEntry) { c.Groups = []string{"others"} })
		}
		suite.Missing = func(t *testing.T, plan driver.Grant) []string {
			t.Helper()
			return append(e.missingRole(t, plan), e.missingEntry(plan)...)
		}
		return suite
	})
}

// TestHubWithAWSAuth: so it does where EKS goes by the ConfigMap alone. The
// subtests write one and the same ConfigMap at the same time.
func TestHubWithAWSAuth(t *testing.T) {
	t.Parallel()
	drivertest.RunGranter(t, func(t *testing.T) drivertest.GranterSuite {
		t.Helper()
		e := newEnv(t, aws.ConfigMap)
		suite := e.suite(t)
		suite.Drift["the line is gone"] = func(t *testing.T, plan driver.Grant) {
			t.Helper()
			e.editAWSAuth(t, func(text string) string { return strings.Replace(text, e.line(t, plan)+"\n", "", 1) })
		}
		suite.Drift["the line is for others"] = func(t *testing.T, plan driver.Grant) {
			t.Helper()
			e.editAWSAuth(t, func(text string) string {
				line := e.line(t, plan)
				return strings.Replace(text, line, strings.ReplaceAll(line, "open-cluster-management:", "others:"), 1)
			})
		}
		suite.Missing = func(t *testing.T, plan driver.Grant) []string {
			t.Helper()
			return append(e.missingRole(t, plan), e.missingLine(t, plan)...)
		}
		return suite
	})
}

// suite is what both ways to map have in common.
func (e *env) suite(t *testing.T) drivertest.GranterSuite {
	t.Helper()
	for _, name := range []string{"one", "two"} {
		e.addManagedRole(t, name)
	}
	arn := func(value string) map[string]string {
		return map[string]string{identity.AnnotationCluster: value}
	}
	foreign := e.register("one")
	foreign[identity.AnnotationSuffix] = "79e99112993014816615711cbd35a9bc"
	twofold := e.register("one")
	twofold[identity.AnnotationClusterBare] = e.pair("two").Managed.String()
	return drivertest.GranterSuite{
		Driver:   func() driver.Granter { return e.driver() },
		Register: e.register, Annotations: identity.Annotations(),
		Spoiled: []map[string]string{
			arn(""), arn("arn"), arn("arn:aws:eks:us-west-2:1:cluster/c"), arn("arn:aws-cn:eks:cn-north-1:444455556666:cluster/one"),
			{identity.AnnotationSuffix: "x"},
			foreign, twofold,
		},
		Fail:     e.network.fail,
		Requests: e.requests,
		Drift: map[string]func(*testing.T, driver.Grant){
			"the role is gone": func(_ *testing.T, plan driver.Grant) { e.cloud.RemoveRole(plan.Data["role"]) },
			"the role trusts another": func(t *testing.T, plan driver.Grant) {
				t.Helper()
				e.recreate(t, plan, func(r *aws.Role) { r.Trust = strings.ReplaceAll(r.Trust, managedRole(e, "one"), managedRole(e, "two")) })
			},
			"a tag is gone": func(t *testing.T, plan driver.Grant) {
				t.Helper()
				e.recreate(t, plan, func(r *aws.Role) { delete(r.Tags, "team") })
			},
			"the managed cluster's role was created again": func(t *testing.T, _ driver.Grant) {
				t.Helper()
				e.cloud.RemoveRole(managedRole(e, "one"))
				e.addManagedRole(t, "one")
			},
		},
		Left: e.left,
	}
}

func managedRole(e *env, name string) string { return e.pair(name).ManagedRole().String() }

// requests counts what reached AWS or Kubernetes, and what changed something.
func (e *env) requests() (all, writes int) {
	all, writes = e.network.counts()
	for _, call := range e.cloud.Calls() {
		read := slices.ContainsFunc([]string{"Get", "List", "Describe"}, func(p string) bool { return strings.HasPrefix(call.Operation, p) })
		if !read && call.Code == "" {
			writes++
		}
	}
	return all, writes
}

// recreate removes the role of a grant and adds it changed, under another unique ID.
func (e *env) recreate(t *testing.T, plan driver.Grant, change func(*aws.Role)) {
	t.Helper()
	role, ok := e.cloud.Role(plan.Data["role"])
	if !ok {
		t.Fatal("there is no role")
	}
	change(&role)
	e.cloud.RemoveRole(role.ARN)
	e.cloud.AddRole(t, role)
}

// missingRole lists what is wrong with the role of a grant.
func (e *env) missingRole(t *testing.T, plan driver.Grant) (missing []string) {
	t.Helper()
	role, ok := e.cloud.Role(plan.Data["role"])
	if !ok {
		return []string{"the role"}
	}
	managed := strings.TrimPrefix(plan.Data["managedCluster"], e.pair("").Managed.String())
	if !cmp.Equal(decode(t, role.Trust), decode(t, e.trust(managed))) {
		missing = append(missing, "the trust policy, which is "+role.Trust)
	}
	tags := tagsOf(e.pair(managed).Tags())
	tags["team"], tags["open-cluster-management.io/hub-cluster-arn"] = "fleet", e.hub.String()
	if diff := cmp.Diff(tags, role.Tags); diff != "" {
		missing = append(missing, "tags:\n"+diff)
	}
	return missing
}

// trust is the trust policy that OCM's proposal has for the role of a cluster.
func (e *env) trust(managed string) string {
	return `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"` + managedRole(e, managed) +
		`"},"Action":"sts:AssumeRole","Condition":{"StringEquals":{"aws:PrincipalTag/hub_cluster_account_id":"` + hubAccount +
		`","aws:PrincipalTag/hub_cluster_name":"` + e.hub.Name + `","aws:PrincipalTag/managed_cluster_account_id":"` + managedAccount +
		`","aws:PrincipalTag/managed_cluster_name":"` + managed + `"}}}]}`
}

func decode(t *testing.T, text string) (value any) {
	t.Helper()
	if plain, err := url.PathUnescape(text); err == nil {
		text = plain
	}
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// missingEntry lists what is wrong with the access entry of a grant: EKS lets in
// the role only that the entry was created for.
func (e *env) missingEntry(plan driver.Grant) []string {
	entry := e.entry(plan)
	if entry == nil {
		return []string{"the access entry"}
	}
	role, _ := e.cloud.Role(plan.Data["role"])
	if entry.RoleID != role.ID || entry.Username != "open-cluster-management:"+plan.Cluster || !slices.Equal(entry.Groups, []string{"open-cluster-management:" + plan.Cluster}) || entry.Tags["team"] != "fleet" {
		return []string{"what the access entry should say"}
	}
	return nil
}

func (e *env) missingLine(t *testing.T, plan driver.Grant) []string {
	t.Helper()
	want := "- rolearn: " + plan.Data["role"] + "\n  username: open-cluster-management:" + plan.Cluster + "\n  groups:\n    - open-cluster-management:" + plan.Cluster
	if got := e.line(t, plan); got != want {
		return []string{"the line in aws-auth, which is " + got}
	}
	return nil
}

// left lists what exists of a grant.
func (e *env) left(t *testing.T, plan driver.Grant) (left []string) {
	t.Helper()
	if _, ok := e.cloud.Role(plan.Data["role"]); ok {
		left = append(left, "the role")
	}
	if e.entry(plan) != nil {
		left = append(left, "the access entry")
	}
	if e.line(t, plan) != "" {
		left = append(left, "the line in aws-auth")
	}
	return left
}

// change is somebody who changes an access entry, or removes it.
func (e *env) change(t *testing.T, plan driver.Grant, change func(*aws.AccessEntry)) {
	t.Helper()
	entry := e.entry(plan)
	if entry == nil {
		t.Fatal("there is no access entry")
	}
	change(entry)
	somebody := e.client(t)
	if entry.PrincipalARN == "" {
		somebody.deleteEntry(t, plan.Data["role"])
		return
	}
	somebody.updateEntry(t, entry)
}
