package awsauth_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/awsauth"
)

const (
	role  = "arn:aws:iam::111122223333:role/ocm-hub-1"
	added = "- rolearn: arn:aws:iam::111122223333:role/ocm-hub-1\n  username: c1\n  groups:\n    - open-cluster-management:c1\n"
	nodes = "# The nodes.\n- rolearn: \"arn:aws:iam::111122223333:role/nodes\" # of all groups\n  username: 'system:node:{{EC2PrivateDNSName}}'\n  groups: [ system:bootstrappers,  system:nodes ]\n"
	admin = "\n# Administrators.\n-   groups:\n    - system:masters\n    rolearn: arn:aws:iam::111122223333:role/admin\n    username: admin\n    unknown: {a: b}\n"
)

func line() awsauth.Line {
	return awsauth.Line{RoleARN: role, Username: "c1", Groups: []string{"open-cluster-management:c1"}}
}

// TestEdit adds, corrects and removes a line, with nothing else changed.
func TestEdit(t *testing.T) {
	t.Parallel()
	stale := "- rolearn: arn:aws:iam::111122223333:role/OCM-hub-1\n  username: c1\n  groups: [others]\n"
	indented := "  - rolearn: arn:aws:iam::111122223333:role/nodes\n    username: n\n"
	for name, tc := range map[string]struct{ before, ensured, removed string }{
		"nothing":            {"", added, ""},
		"an empty list":      {"[]\n", added, "[]\n"},
		"null":               {"null\n", added, "null\n"},
		"others":             {nodes + admin, nodes + admin + added, nodes + admin},
		"there already":      {nodes + added + admin, nodes + added + admin, nodes + admin},
		"only ours":          {added, added, "[]\n"},
		"another spelling":   {nodes + stale + admin, nodes + admin + added, nodes + admin},
		"twice":              {added + nodes + added, nodes + added, nodes},
		"no end of line":     {nodes[:len(nodes)-1], nodes + added, nodes[:len(nodes)-1]},
		"indented":           {indented, indented + "  - rolearn: " + role + "\n    username: c1\n    groups:\n      - open-cluster-management:c1\n", indented},
		"a comment at last":  {nodes + "# The end.\n", nodes + "# The end.\n" + added, nodes + "# The end.\n"},
		"a comment in front": {"# Ours.\n" + stale + nodes, "# Ours.\n" + nodes + added, "# Ours.\n" + nodes},
		"a comment behind":   {nodes + stale + "\n# The end.\n", nodes + "\n# The end.\n" + added, nodes + "\n# The end.\n"},
	} {
		ensured, err := awsauth.Ensure(tc.before, line())
		if diff := cmp.Diff(tc.ensured, ensured); err != nil || diff != "" {
			t.Errorf("%s, ensured: %v\n%s", name, err, diff)
		}
		removed, err := awsauth.Remove(tc.before, role)
		if diff := cmp.Diff(tc.removed, removed); err != nil || diff != "" {
			t.Errorf("%s, removed: %v\n%s", name, err, diff)
		}
	}
}

// TestFlow: a list in one line is written rewrite, and says the same of others.
func TestFlow(t *testing.T) {
	t.Parallel()
	const before = `[{"rolearn":"arn:aws:iam::111122223333:role/nodes","username":"n","groups":["g"],"other":1}]`
	ensured, err := awsauth.Ensure(before, line())
	if err != nil {
		t.Fatal(err)
	}
	want := `- {"rolearn": "arn:aws:iam::111122223333:role/nodes", "username": "n", "groups": ["g"], "other": 1}` + "\n" + added
	if diff := cmp.Diff(want, ensured); diff != "" {
		t.Error(diff)
	}
}

// TestUnreadable: what is no map of roles is not edited.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"a: b", "text", "- a\n", "- {}\n", "- rolearn: [x]\n", "- rolearn: a\n groups: b\n", "\t- rolearn: a\n", "{{", "- username: x\n", "- rolearn: a\n  groups: 1\n  username: [b]\n"} {
		if got, err := awsauth.Ensure(text, line()); !errors.Is(err, awsauth.ErrUnreadable) || got != "" {
			t.Errorf("%q became %q, %v", text, got, err)
		}
		if got, err := awsauth.Remove(text, role); !errors.Is(err, awsauth.ErrUnreadable) || got != "" {
			t.Errorf("%q became %q, %v", text, got, err)
		}
	}
}
