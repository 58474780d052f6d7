package policy_test

import (
	"strings"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws/policy"
)

const (
	allowed, denied, unmentioned = policy.Allowed, policy.Denied, policy.Unmentioned

	role     = "arn:aws:iam::444455556666:role/agent"
	provider = "arn:aws:iam::444455556666:oidc-provider/oidc.example/id/A"
)

func statements(body string) string { return `{"Version":"2012-10-17","Statement":` + body + `}` }

func TestEvaluate(t *testing.T) {
	t.Parallel()
	request := policy.Request{
		Action: "iam:CreateRole", Resource: "arn:aws:iam::111122223333:role/ocm-hub-1",
		Context: map[string][]string{
			"aws:PrincipalTag/team": {"fleet"}, "aws:TagKeys": {"a", "b"},
		},
	}
	allow := func(rest string) string {
		return `{"Effect":"Allow","Action":"iam:CreateRole","Resource":"*"` + rest + `}`
	}
	when := func(condition string) string { return allow(`,"Condition":{` + condition + `}`) }
	for name, test := range map[string]struct {
		statements string
		want       policy.Effect
	}{
		"exactly":                   {allow(""), allowed},
		"in a list":                 {"[" + allow("") + "]", allowed},
		"denied by another":         {"[" + allow("") + `,{"Effect":"Deny","Action":"iam:*","Resource":"*"}]`, denied},
		"denied before":             {`[{"Effect":"Deny","Action":"iam:*","Resource":"*"},` + allow("") + "]", denied},
		"wildcard and case":         {`{"Effect":"Allow","Action":"IAM:create*","Resource":"arn:aws:iam::*:role/ocm-hub-?"}`, allowed},
		"another action":            {`{"Effect":"Allow","Action":"iam:CreateRoles","Resource":"*"}`, unmentioned},
		"another resource":          {`{"Effect":"Allow","Action":"*","Resource":"arn:aws:iam::111122223333:role/other"}`, unmentioned},
		"resources compare by case": {`{"Effect":"Allow","Action":"*","Resource":"arn:aws:iam::111122223333:role/OCM-hub-1"}`, unmentioned},
		"a tag":                     {when(`"StringEquals":{"aws:principaltag/TEAM":"fleet"}`), allowed},
		"one of a tag's values":     {when(`"StringEquals":{"aws:TagKeys":["b","c"]}`), allowed},
		"no such tag":               {when(`"StringEquals":{"aws:PrincipalTag/none":"x"}`), unmentioned},
		"another tag":               {when(`"StringEquals":{"aws:PrincipalTag/team":["x","Fleet"]}`), unmentioned},
		"one of two conditions":     {when(`"StringEquals":{"aws:PrincipalTag/team":"fleet","aws:PrincipalTag/x":"y"}`), unmentioned},
	} {
		document, err := policy.ParseIdentity(statements(test.statements))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := policy.Evaluate(&request, document); got.Effect != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

func TestEvaluateTrust(t *testing.T) {
	t.Parallel()
	byRole := policy.Caller{Kind: "AWS", Names: []string{role}, Account: "444455556666"}
	byToken := policy.Caller{Kind: "Federated", Names: []string{provider}, Account: "444455556666"}
	for name, test := range map[string]struct {
		principal string
		caller    policy.Caller
		want      policy.Decision
	}{
		"the role":          {`{"AWS":"` + role + `"}`, byRole, policy.Decision{Effect: allowed, Action: "sts:*", Named: true}},
		"one of two":        {`{"AWS":["444455556666","` + role + `"]}`, byRole, policy.Decision{Effect: allowed, Action: "sts:*", Named: true}},
		"another role":      {`{"AWS":"` + role + `2"}`, byRole, policy.Decision{}},
		"a role's wildcard": {`{"AWS":"arn:aws:iam::444455556666:role/*"}`, byRole, policy.Decision{}},
		"the account":       {`{"AWS":"444455556666"}`, byRole, policy.Decision{Effect: allowed, Action: "sts:*"}},
		"its root":          {`{"AWS":"arn:aws:iam::444455556666:root"}`, byRole, policy.Decision{Effect: allowed, Action: "sts:*"}},
		"another account":   {`{"AWS":"111122223333"}`, byRole, policy.Decision{}},
		"anyone":            {`"*"`, byToken, policy.Decision{Effect: allowed, Action: "sts:*"}},
		"the provider":      {`{"Federated":"` + provider + `"}`, byToken, policy.Decision{Effect: allowed, Action: "sts:*", Named: true}},
		"of another kind":   {`{"AWS":"` + provider + `"}`, byToken, policy.Decision{}},
		"account of tokens": {`{"Federated":"444455556666"}`, byToken, policy.Decision{}},
	} {
		trust, err := policy.ParseTrust(statements(`{"Effect":"Allow","Action":"sts:*","Principal":` + test.principal + `}`))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := policy.EvaluateTrust(&policy.Request{Action: "sts:AssumeRole", Caller: test.caller}, trust)
		if got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	identity := `{"Effect":"Allow","Action":"a:b","Resource":"*"}`
	trust := `{"Effect":"Allow","Action":"a:b","Principal":"*"}`
	if _, err := policy.ParseIdentity(statements(identity)); err != nil {
		t.Fatal(err)
	}
	if _, err := policy.ParseTrust(statements(trust)); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		parse func(string) (*policy.Document, error)
		text  string
	}{
		"no JSON":                 {policy.ParseIdentity, "{"},
		"two documents":           {policy.ParseIdentity, statements(identity) + statements(identity)},
		"an unknown version":      {policy.ParseIdentity, strings.Replace(statements(identity), "2012", "2013", 1)},
		"an unknown field":        {policy.ParseIdentity, strings.Replace(statements(identity), "Resource", "Ressource", 1)},
		"an unknown effect":       {policy.ParseIdentity, strings.Replace(statements(identity), "Allow", "allow", 1)},
		"no action":               {policy.ParseIdentity, strings.Replace(statements(identity), `"Action":"a:b",`, "", 1)},
		"no resource":             {policy.ParseIdentity, strings.Replace(statements(identity), `,"Resource":"*"`, "", 1)},
		"a principal in identity": {policy.ParseIdentity, statements(strings.Replace(identity, "}", `,"Principal":"*"}`, 1))},
		"a resource in trust":     {policy.ParseTrust, statements(strings.Replace(trust, "}", `,"Resource":"*"}`, 1))},
		"no principal in trust":   {policy.ParseTrust, statements(identity)},
		"an unknown kind":         {policy.ParseTrust, statements(strings.Replace(trust, `"*"`, `{"Role":"x"}`, 1))},
		"all but actions":         {policy.ParseIdentity, statements(strings.Replace(identity, "Action", "NotAction", 1))},
		"a variable":              {policy.ParseIdentity, strings.Replace(statements(identity), `"*"`, `"arn:${aws:username}"`, 1)},
		"an unknown operator":     {policy.ParseIdentity, statements(strings.Replace(identity, "}", `,"Condition":{"IpAddress":{"a":"b"}}}`, 1))},
	} {
		if _, err := test.parse(test.text); err == nil {
			t.Errorf("%s was read: %s", name, test.text)
		}
	}
}
