package tokens_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// covered is a line of tokensmith's design and the tests that cover it, as
// "directory.TestName" or "directory.TestName/subtest".
type covered struct {
	line  string
	tests []string
}

// coverage is tokensmith's design, section by section.
func coverage() map[string][]covered {
	return map[string][]covered{
		"Objectives": {
			{"1 tokens from multiple workload clusters", []string{"e2e/tokens.TestTokensmith/Objective 1: tokens of several clusters, each by its issuer"}},
			{"2 no network calls to workload clusters", []string{"e2e/tokens.TestTokensmith/Objective 2, Benefits: without any connection to the workload clusters"}},
			{"3 the same namespace in the management cluster", []string{
				"e2e/tokens.TestTokensmith/Objective 3: the same namespace in the management cluster", "pkg/tokenauthorizer/policy.TestTokensmithsMeaning",
			}},
			{"4 documentation of extracting and configuring JWKS", []string{"docs.TestReferences", "examples/token-authorizer.TestConfiguration"}},
			{"5 TokenReview goes on working", []string{"e2e/tokens.TestTokensmith/Usage, Legacy Mode: TokenReview by --workload-kubeconfig"}},
		},
		"1 Configuration Structures": {
			{"name, issuer, jwks_uri, jwks_data", []string{"pkg/tokenauthorizer/config.TestTokensmithsForm"}},
			{"at least one cluster", []string{"e2e/tokens.TestTokensmith/at least one cluster"}},
			{"no duplicate names", []string{"e2e/tokens.TestTokensmith/no duplicate names"}},
			{"no duplicate issuers: we take them, told apart by their keys, and refuse a key that is shared", []string{
				"pkg/tokenauthorizer/config.TestOneIssuerForTwoClusters", "pkg/tokenauthorizer/jwks.TestOneIssuerTwoClusters", "e2e/tokens.TestTokensmith/one key under one issuer",
			}},
			{"jwks_uri or jwks_data", []string{"e2e/tokens.TestTokensmith/JWKSURI or JWKSData"}},
			{"at least one key", []string{"e2e/tokens.TestTokensmith/at least one key"}},
		},
		"2 Configuration Loader": {
			{"reads the file", []string{"pkg/tokenauthorizer/config.TestLoad", "e2e/tokens.TestTokensmith/a file that does not exist"}},
			{"parses YAML, also keys in it", []string{"pkg/tokenauthorizer/config.TestTokensmithsForm", "pkg/tokenauthorizer/config.FuzzParse"}},
			{"validates the structure", []string{"pkg/tokenauthorizer/config.TestInvalid", "pkg/tokenauthorizer/config.TestEveryProblemIsReportedAtOnce"}},
		},
		"3 JWKS Validation Logic": {
			{"validates JWTs", []string{"pkg/tokenauthorizer/subject.TestVerifyReal", "pkg/tokenauthorizer/subject.TestHostileTokens"}},
			{"matches the issuer to a cluster", []string{"pkg/tokenauthorizer/subject.TestJWKSValidator_Validate"}},
			{"verifies the signature with the cluster's keys", []string{"pkg/helpers/jwk.TestVerify", "pkg/tokenauthorizer/subject.TestCurves"}},
			{"validates exp, nbf, iat", []string{"pkg/tokenauthorizer/subject.TestStandardClaims"}},
			{"extracts the identity", []string{"pkg/tokenauthorizer/subject.TestExtractServiceAccountIdentity"}},
			{"caches fetched keys for an hour: for as long as their server says, at most that", []string{"pkg/tokenauthorizer/jwks.TestRefreshFollowsCacheControl"}},
			{"the same identity from both modes", []string{"pkg/tokenauthorizer/review.TestTokenReview"}},
			{"inline keys and keys by URI", []string{"pkg/tokenauthorizer/config.TestKeySources", "e2e/tokens.TestSlowProvider"}},
			{"several keys per cluster, for rotation", []string{"pkg/tokenauthorizer/subject.TestJWKSValidator_MultipleKeys", "e2e/tokens.TestRotation"}},
			{"flattened Kubernetes claims", []string{"pkg/tokenauthorizer/subject.TestExtractServiceAccountIdentity"}},
		},
		"4 Updated Token Validator": {
			{"one interface for both", []string{"pkg/tokenauthorizer/review.TestTokenReview", "pkg/tokenauthorizer/authorizer.TestTokenExchangeFlow"}},
		},
		"5 Command-Line Interface Updates": {
			{"--clusters-config", []string{"e2e/tokens.TestTokensmith/Usage, New Mode: the command line and the configuration example"}},
			{"--workload-kubeconfig, deprecated", []string{"e2e/tokens.TestTokensmith/Usage, Legacy Mode: TokenReview by --workload-kubeconfig"}},
			{"flags choose the mode", []string{"e2e/tokens.TestTokensmith/Benefits, Compatibility: --clusters-config goes before --workload-kubeconfig"}},
			{"only the management cluster's client, no calls to workload clusters", []string{
				"e2e/tokens.TestTokensmith/Objective 2, Benefits: without any connection to the workload clusters",
			}},
		},
		"6 Documentation": {
			{"format and fields, extracting keys, ConfigMaps, flow, issuers, security, migration", []string{"pkg/tokenauthorizer.TestTheGuideIsComplete", "docs.TestReferences"}},
			{"troubleshooting", []string{"pkg/tokenauthorizer.TestEveryReasonIsExplained"}},
		},
		"7 Integration Tests": {
			{"multiple clusters", []string{"pkg/tokenauthorizer/subject.TestJWKSValidator_Validate"}},
			{"the cluster by its issuer", []string{"pkg/tokenauthorizer/subject.TestJWKSValidator_Validate"}},
			{"unknown issuers", []string{"e2e/tokens.TestTokensmith/Flow 3, Security 5: an issuer that no cluster has"}},
			{"expired tokens", []string{"pkg/tokenauthorizer/subject.TestHostileTokens"}},
			{"invalid signatures", []string{"e2e/tokens.TestTokensmith/Flow 5: a signature that is not the key's"}},
			{"malformed tokens", []string{"pkg/tokenauthorizer/subject.FuzzParse"}},
			{"several keys", []string{"pkg/tokenauthorizer/subject.TestJWKSValidator_MultipleKeys"}},
			{"identity from various claim formats", []string{"pkg/tokenauthorizer/subject.TestExtractServiceAccountIdentity"}},
			{"kid in the header, flat and nested tokens (we have API servers make both)", []string{"pkg/tokenauthorizer/review.TestLegacyToken", "pkg/tokenauthorizer/subject.TestVerifyReal"}},
		},
		"Configuration Example": {
			{"both clusters", []string{"e2e/tokens.TestTokensmith/Usage, New Mode: the command line and the configuration example"}},
		},
		"Token Validation Flow": {
			{"1 extract the token", []string{"e2e/tokens.TestTokensmith/Flow 1: a missing header, another scheme, an empty token", "pkg/tokenauthorizer/server.TestToken"}},
			{"2 parse the JWT", []string{"pkg/tokenauthorizer/subject.FuzzParse"}},
			{"3 find the cluster", []string{"e2e/tokens.TestTokensmith/Flow 3, Security 5: an issuer that no cluster has"}},
			{"4 get the keys", []string{"pkg/tokenauthorizer/config.TestKeySources", "e2e/tokens.TestProviderDown"}},
			{"5 verify the signature", []string{"e2e/tokens.TestTokensmith/Flow 5: a signature that is not the key's"}},
			{"6 validate the claims", []string{"pkg/tokenauthorizer/subject.TestStandardClaims", "pkg/tokenauthorizer/subject.TestHostileTokens"}},
			{"7 extract the identity", []string{"pkg/tokenauthorizer/subject.TestExtractServiceAccountIdentity"}},
			{"8 exchange", []string{
				"pkg/tokenauthorizer/authorizer.TestTokenExchangeFlow",
				"e2e/tokens.TestTokensmith/Flow 8: no ServiceAccount of that name in the management cluster",
			}},
			{"9 return the response", []string{"e2e/tokens.TestTokensmith/Flow 9: the upstream sees the other token and not the first", "pkg/tokenauthorizer/server.TestAllowed"}},
		},
		"Security Considerations": {
			{"1 JWKS Trust", []string{
				"e2e/tokens.TestTokensmith/Flow 5, Security 1: a token of a cluster that is not configured, with an issuer that is", "pkg/helpers/jwk.TestParseRefuses",
			}},
			{"2 Key Rotation", []string{"e2e/tokens.TestRotation"}},
			{"3 Regular Updates", []string{"e2e/tokens.TestRotation", "pkg/tokenauthorizer/jwks.TestRotation", "pkg/issuer/publish.TestRotation"}},
			{"4 Namespace Isolation", []string{
				"e2e/tokens.TestTokensmith/Security 4: the identity keeps its namespace, and some are never reached", "pkg/tokenauthorizer/mint.TestSameUIDFromTwoClusters",
			}},
			{"5 Issuer Validation", []string{"e2e/tokens.TestTokensmith/Flow 3, Security 5: an issuer that no cluster has"}},
		},
		// tokensmith counts 23; its list has 24.
		"Testing": {
			{"TestTokenExchangeFlow", []string{"pkg/tokenauthorizer/authorizer.TestTokenExchangeFlow"}},
			{"TestTokenExchangeServiceAccountNotFound", []string{"pkg/tokenauthorizer/authorizer.TestTokenExchangeServiceAccountNotFound"}},
			{"TestTokenValidationFails", []string{"pkg/tokenauthorizer/authorizer.TestTokenValidationFails"}},
			{"TestTokenExpirationPreserved", []string{"pkg/tokenauthorizer/authorizer.TestTokenExpirationPreserved"}},
			{"TestJWKSValidator_Validate (6)", []string{"pkg/tokenauthorizer/subject.TestJWKSValidator_Validate"}},
			{"TestJWKSValidator_MultipleKeys (2)", []string{"pkg/tokenauthorizer/subject.TestJWKSValidator_MultipleKeys"}},
			{"TestExtractServiceAccountIdentity (5)", []string{"pkg/tokenauthorizer/subject.TestExtractServiceAccountIdentity"}},
			{"TestParseServiceAccountIdentity (7)", []string{"pkg/tokenauthorizer/review.TestParseServiceAccountIdentity"}},
		},
		"Future Enhancements": {
			{"1 automatic refresh", []string{"pkg/tokenauthorizer/jwks.TestRefreshFollowsCacheControl", "e2e/tokens.TestRotation"}},
			{"2 hot reload", []string{"e2e/tokens.TestExchange/a configuration that is broken and mended under load", "pkg/tokenauthorizer/config.TestWatchAConfigMap"}},
			{"3 metrics per cluster", []string{"pkg/tokenauthorizer/authorizer.TestMetrics", "pkg/tokenauthorizer.TestEveryMetricIsDocumented"}},
			{"4 OIDC discovery", []string{"pkg/tokenauthorizer/jwks.TestDiscovery", "e2e/tokens.TestRotation"}},
			{"5 cluster health", []string{"pkg/tokenauthorizer.TestClusters", "pkg/issuer/trust.TestTrust"}},
		},
	}
}

// TestCoverage fails when a test that is said to cover a line does not exist.
func TestCoverage(t *testing.T) {
	t.Parallel()
	known := map[string]map[string]bool{}
	for section, lines := range coverage() {
		for _, line := range lines {
			if len(line.tests) == 0 {
				t.Errorf("%s: %s: no test", section, line.line)
			}
			for _, test := range line.tests {
				dir, name, _ := strings.Cut(test, ".")
				if known[dir] == nil {
					known[dir] = testsIn(t, dir)
				}
				name, subtest, isSubtest := strings.Cut(name, "/")
				if !known[dir][name] || isSubtest && !known[dir][name+"/"+subtest] {
					t.Errorf("%s: %s: there is no %s", section, line.line, test)
				}
			}
		}
	}
}

// testsIn are the names of the tests in a directory of the repository, and behind
// each, with a slash between, all texts in its own file: a subtest's name is one
// of them, and a text elsewhere is no credit.
func testsIn(t *testing.T, dir string) map[string]bool {
	t.Helper()
	root := filepath.Join("..", "..", dir)
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), "_test.go") || entry.Name() == "coverage_test.go" {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, entry.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		tests, texts := namesIn(file)
		for _, test := range tests {
			found[test] = true
			for _, text := range texts {
				found[test+"/"+text] = true
			}
		}
	}
	return found
}

// namesIn are the tests and the texts of a file.
func namesIn(file *ast.File) (tests, texts []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv == nil && (strings.HasPrefix(n.Name.Name, "Test") || strings.HasPrefix(n.Name.Name, "Fuzz")) {
				tests = append(tests, n.Name.Name)
			}
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				texts = append(texts, text)
			}
		}
		return true
	})
	return tests, texts
}
