package issuer

import (
	"fmt"
	"net/url"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/issuers"
)

// maxIssuers is how many issuers kube-apiserver takes.
const maxIssuers = 64

// The types of apiserver.config.k8s.io/v1, as far as they are written.
type (
	authenticationConfig struct {
		APIVersion string             `json:"apiVersion"`
		Kind       string             `json:"kind"`
		JWT        []jwtAuthenticator `json:"jwt"`
	}
	jwtAuthenticator struct {
		Issuer        jwtIssuer     `json:"issuer"`
		ClaimRules    []claimRule   `json:"claimValidationRules"`
		ClaimMappings claimMappings `json:"claimMappings"`
	}
	jwtIssuer struct {
		URL          string   `json:"url"`
		DiscoveryURL string   `json:"discoveryURL,omitempty"`
		CA           string   `json:"certificateAuthority,omitempty"`
		Audiences    []string `json:"audiences"`
		MatchPolicy  string   `json:"audienceMatchPolicy,omitempty"`
	}
	claimRule struct {
		Expression string `json:"expression"`
		Message    string `json:"message"`
	}
	claimMappings struct {
		Username expression     `json:"username"`
		Groups   expression     `json:"groups"`
		UID      expression     `json:"uid"`
		Extra    []extraMapping `json:"extra"`
	}
	expression struct {
		Expression string `json:"expression"`
	}
	extraMapping struct {
		Key             string `json:"key"`
		ValueExpression string `json:"valueExpression"`
	}
)

// authentication writes an AuthenticationConfiguration for an API server whose
// own issuer is own. A workload becomes the user
// CLUSTER:system:serviceaccount:NAMESPACE:NAME, which is no ServiceAccount of the
// hub.
func authentication(list []issuers.Issuer, own string) ([]byte, []omission, error) {
	config := authenticationConfig{APIVersion: "apiserver.config.k8s.io/v1", Kind: "AuthenticationConfiguration"}
	var left []omission
	for _, issuer := range list {
		why := inexpressible(list, issuer, own)
		if why == "" && len(config.JWT) == maxIssuers {
			why = fmt.Sprintf("kube-apiserver takes %d issuers and no more", maxIssuers)
		}
		if why != "" {
			left = append(left, omission{issuer.Cluster, why})
			continue
		}
		config.JWT = append(config.JWT, authenticator(issuer))
	}
	data, err := yaml.Marshal(config)
	return data, left, err
}

// inexpressible says what an AuthenticationConfiguration cannot express: kube-apiserver fetches the keys
// itself, through the discovery of the issuer, and knows an issuer once.
func inexpressible(list []issuers.Issuer, issuer issuers.Issuer, own string) string {
	if why := unusable(issuer); why != "" {
		return why
	}
	switch others := namesakes(list, issuer); {
	case issuer.Issuer == own:
		return fmt.Sprintf("its issuer %s is the API server's own", issuer.Issuer)
	case others != "":
		return fmt.Sprintf("its issuer %s is also that of %s, and kube-apiserver knows an issuer once", issuer.Issuer, others)
	case len(issuer.Audiences) == 0:
		return "no audience is configured for it: name one with --audience"
	}
	return unfit(issuer)
}

// unfit says why kube-apiserver could not get at the keys of an issuer.
func unfit(issuer issuers.Issuer) string {
	u, err := url.Parse(issuer.Issuer)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return "kube-apiserver takes https issuers only, not " + issuer.Issuer
	}
	auth := issuer.From.Auth
	switch {
	case u.RawQuery != "", u.Fragment != "", u.User != nil:
		return "kube-apiserver takes no issuer with a user, query or fragment, such as " + issuer.Issuer
	case issuer.From.URI != "", auth.TokenFile != "", auth.KubeconfigFile != "":
		return "its keys are not found by discovery without a credential, which is all that kube-apiserver can do"
	case inCluster(u.Hostname()) && discoveryURL(issuer) == "":
		return fmt.Sprintf("kube-apiserver cannot discover the keys of %s, which is a name inside the cluster", issuer.Issuer)
	}
	return ""
}

func inCluster(host string) bool {
	return strings.HasSuffix(host, ".svc") || strings.Contains(host, ".svc.") || strings.HasSuffix(host, ".local") || host == "kubernetes"
}

func discoveryURL(issuer issuers.Issuer) string {
	const path = "/.well-known/openid-configuration"
	if issuer.From.Discovery == nil || issuer.From.Discovery.URL == "" {
		return ""
	}
	base := issuer.From.Discovery.URL
	if !strings.Contains(base, "/.well-known/") {
		base = strings.TrimSuffix(base, "/") + path
	}
	if base == strings.TrimSuffix(issuer.Issuer, "/")+path {
		return ""
	}
	return base
}

func authenticator(issuer issuers.Issuer) jwtAuthenticator {
	a := jwtAuthenticator{
		Issuer: jwtIssuer{
			URL: issuer.Issuer, DiscoveryURL: discoveryURL(issuer), CA: string(issuer.From.CA), Audiences: issuer.Audiences,
		},
		ClaimRules: []claimRule{{
			Expression: `claims.sub.startsWith("system:serviceaccount:") && has(claims.exp) && has(claims.iat)`,
			Message:    "only tokens of ServiceAccounts that end are taken",
		}},
		ClaimMappings: claimMappings{
			Username: expression{fmt.Sprintf(`%q + claims.sub`, issuer.Cluster+":")},
			Groups:   expression{fmt.Sprintf(`[%q, %q + claims["kubernetes.io"].namespace]`, issuer.Cluster+":serviceaccounts", issuer.Cluster+":serviceaccounts:")},
			UID:      expression{fmt.Sprintf(`%q + claims["kubernetes.io"].serviceaccount.uid`, issuer.Cluster+"/")},
			Extra:    []extraMapping{{Key: "open-cluster-management.io/cluster", ValueExpression: fmt.Sprintf("%q", issuer.Cluster)}},
		},
	}
	if len(issuer.Audiences) > 1 {
		a.Issuer.MatchPolicy = "MatchAny"
	}
	return a
}
