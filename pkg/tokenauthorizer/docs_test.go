package tokenauthorizer_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/docs"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
)

// page is what the guide, the operations page and the reference say together.
func page(t *testing.T) string {
	t.Helper()
	return docs.Page(t, "guides/workload-tokens.md") +
		docs.Page(t, "guides/token-authorizer-operations.md") + docs.Page(t, "reference/token-authorizer.md")
}

// reasons are all that package denial has.
func reasons(t *testing.T) []denial.Reason {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "denial/denial.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var found []denial.Reason
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); ok && name.Name == "Reason" || spec.Names[0].Name == "RateLimited" {
			if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
				if text, err := strconv.Unquote(literal.Value); err == nil {
					found = append(found, denial.Reason(text))
				}
			}
		}
		return true
	})
	if len(found) < 20 {
		t.Fatalf("only %v were found", found)
	}
	return found
}

// TestTheGuideIsComplete: the page has each part of a guide to keys by hand, with
// the commands that it needs.
func TestTheGuideIsComplete(t *testing.T) {
	t.Parallel()
	text := page(t)
	for what, parts := range map[string][]string{
		"extracting keys":            {"### Keys by hand", "get --raw /.well-known/openid-configuration", "get --raw /openid/v1/jwks", "issuer add cluster1"},
		"issuers that match":         {"must be the same text"},
		"a mounted ConfigMap":        {"kubectl create configmap", "mountPath:", "jwksFile: /etc/clusters/", "--clusters-config=/etc/clusters/clusters.yaml", "subPath"},
		"migrating to keys":          {"### From TokenReview to keys", "--workload-kubeconfig", "review: {mode: Always", "To go back"},
		"the flow":                   {"subject token  | proxy (Envoy)"},
		"fields":                     {"### The fields", "### Without a hub: a file"},
		"security":                   {"## Threat model", "### Proof of possession"},
		"troubleshooting":            {"## Why was I refused?"},
		"who reaches the authorizer": {"token-authorizer-client"},
	} {
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("%s: the page lacks %q", what, part)
			}
		}
	}
}

// TestNginxVerifies: nginx verifies no server unless it is told to, and with
// which CA; the sample does so on both hops.
func TestNginxVerifies(t *testing.T) {
	t.Parallel()
	_, sample, _ := strings.Cut(page(t), "```\nproxy_ssl_verify on;")
	sample, _, _ = strings.Cut(sample, "```")
	locations := strings.Split(sample, "\nlocation ")[1:]
	if len(locations) != 2 {
		t.Fatalf("%d locations in the sample, which must begin with proxy_ssl_verify on", len(locations))
	}
	for _, location := range locations {
		for _, need := range []string{"proxy_pass https://", "proxy_ssl_trusted_certificate ", "proxy_ssl_name "} {
			if !strings.Contains(location, need) {
				t.Errorf("a location lacks %q: %s", need, location)
			}
		}
	}
}

// TestEveryReasonIsExplained keeps the table of reasons complete and right.
func TestEveryReasonIsExplained(t *testing.T) {
	t.Parallel()
	status := map[denial.Class]int{
		denial.Unauthenticated: 401, denial.Forbidden: 403, denial.Limited: 429, denial.Unavailable: 503,
	}
	text, all := page(t), reasons(t)
	for _, reason := range all {
		row := fmt.Sprintf("\n| `%s` | %d |", reason, status[reason.Class()])
		if strings.Count(text, row) != 1 {
			t.Errorf("docs/reference/token-authorizer.md must have one row that begins with %q", row[1:])
		}
	}
	for _, row := range regexp.MustCompile("\n\\| `([a-z_]+)` \\| [0-9]{3} \\|").FindAllStringSubmatch(text, -1) {
		if !slices.Contains(all, denial.Reason(row[1])) {
			t.Errorf("docs/reference/token-authorizer.md explains %s, which nothing says", row[1])
		}
	}
}

// metrics are those that any file of this tree registers, without their prefix.
func metrics(t *testing.T) []string {
	t.Helper()
	names := docs.Matches(t, `(?:[pP]refix ?\+ ?"|"ocm_extauthz_)([a-z_]+)"`, "pkg/tokenauthorizer")
	if len(names) < 5 {
		t.Fatalf("only %v were found", names)
	}
	return names
}

func TestEveryMetricIsDocumented(t *testing.T) {
	t.Parallel()
	text := page(t)
	for _, name := range metrics(t) {
		if !strings.Contains(text, "`"+name+"{") && !strings.Contains(text, "`"+name+"`") {
			t.Errorf("docs/guides/token-authorizer-operations.md lacks the metric %s", name)
		}
	}
}

// TestTheAlertsAreAboutMetricsThatExist keeps the sample of alert rules usable.
func TestTheAlertsAreAboutMetricsThatExist(t *testing.T) {
	t.Parallel()
	known := metrics(t)
	for i := range known {
		known[i] = "ocm_extauthz_" + known[i]
	}
	docs.CheckAlerts(t, "reference/alerts/workload-tokens.yaml", known, "summary", "runbook")
}
