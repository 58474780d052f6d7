package issuer

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/issuers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/issuer/publish"
)

// istio writes a RequestAuthentication, with the keys in it where they are known.
func istio(list []issuers.Issuer, namespace string) ([]byte, []omission, error) {
	var rules []map[string]any
	var left []omission
	for _, issuer := range list {
		rule, why, err := jwtRule(list, issuer)
		if err != nil {
			return nil, nil, err
		}
		if why != "" {
			left = append(left, omission{issuer.Cluster, why})
			continue
		}
		rules = append(rules, rule)
	}
	data, err := yaml.Marshal(map[string]any{
		"apiVersion": "security.istio.io/v1", "kind": "RequestAuthentication",
		"metadata": map[string]any{"name": "ocm-issuers", "namespace": namespace},
		"spec":     map[string]any{"jwtRules": rules},
	})
	return data, left, err
}

func jwtRule(list []issuers.Issuer, issuer issuers.Issuer) (rule map[string]any, why string, err error) {
	switch others := namesakes(list, issuer); {
	case untold(issuer) != "":
		return nil, untold(issuer), nil
	case others != "":
		return nil, fmt.Sprintf("its issuer %s is also that of %s, and Istio could not tell whose a token is", issuer.Issuer, others), nil
	case len(issuer.Audiences) == 0:
		return nil, "no audience is configured for it: name one with --audience", nil
	}
	rule = map[string]any{"issuer": issuer.Issuer, "audiences": issuer.Audiences}
	if len(issuer.Set.Keys) == 0 {
		if issuer.From.URI != "" {
			rule["jwksUri"] = issuer.From.URI
		}
		return rule, unreachable(issuer), nil // Without keys, Istio discovers them.
	}
	set, err := publish.Encode(issuer.Set.Keys)
	if err != nil {
		return nil, "", fmt.Errorf("cluster %s: %w", issuer.Cluster, err)
	}
	rule["jwks"] = string(set.JSON)
	return rule, "", nil
}

// unreachable says why Istio could not get at keys that are not known here.
func unreachable(issuer issuers.Issuer) string {
	from := issuer.From
	switch {
	case len(from.CA) > 0, from.CAFile != "", from.Auth.TokenFile != "", from.Auth.KubeconfigFile != "":
		return "its keys need a CA certificate or a credential to be fetched, which a RequestAuthentication cannot name"
	case from.URI != "":
		return ""
	case from.Discovery == nil:
		return "its keys are not known here"
	case discoveryURL(issuer) != "":
		return "its discovery is elsewhere than its issuer, which a RequestAuthentication cannot say"
	}
	return ""
}

// vault writes commands that configure one mount of the JWT auth method for
// each cluster. Mounts keep clusters with one issuer apart.
func vault(list []issuers.Issuer) ([]byte, []omission, error) {
	var out bytes.Buffer
	var left []omission
	for _, issuer := range list {
		config, why, err := vaultConfig(issuer)
		if err != nil {
			return nil, nil, err
		}
		if why != "" {
			left = append(left, omission{issuer.Cluster, why})
			continue
		}
		data, err := json.MarshalIndent(config, "", "  ")
		if err != nil {
			return nil, nil, err
		}
		path := "jwt-" + issuer.Cluster
		fmt.Fprintf(&out, "# Cluster %s. Roles: vault write auth/%s/role/NAME role_type=jwt user_claim=sub bound_audiences=%q bound_subject=system:serviceaccount:NAMESPACE:NAME\n",
			issuer.Cluster, path, firstOr(issuer.Audiences, "AUDIENCE"))
		fmt.Fprintf(&out, "vault auth enable -path=%s jwt || true\nvault write auth/%s/config - <<'EOF'\n%s\nEOF\n", path, path, data)
	}
	return out.Bytes(), left, nil
}

// pathRune keeps everything out of the commands that a shell could read otherwise.
func pathRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-._", r)
}

func firstOr(values []string, otherwise string) string {
	if len(values) == 0 {
		return otherwise
	}
	return values[0]
}

func vaultConfig(issuer issuers.Issuer) (config map[string]any, why string, err error) {
	if why := untold(issuer); why != "" {
		return nil, why, nil
	}
	if strings.ContainsFunc(issuer.Cluster, func(r rune) bool { return !pathRune(r) }) {
		return nil, "its name cannot be part of a path", nil
	}
	if issuer.From.Auth.TokenFile != "" || issuer.From.Auth.KubeconfigFile != "" {
		return nil, "its keys need a credential to be fetched, which Vault does not have", nil
	}
	config = map[string]any{"bound_issuer": issuer.Issuer}
	if len(issuer.Set.Keys) > 0 {
		keys, algorithms, err := vaultKeys(issuer.Set.Keys)
		if err != nil {
			return nil, "", fmt.Errorf("cluster %s: %w", issuer.Cluster, err)
		}
		config["jwt_validation_pubkeys"], config["jwt_supported_algs"] = keys, algorithms
		return config, "", nil
	}
	return config, vaultSource(issuer, config), nil
}

// vaultSource has Vault fetch the keys, or says why it could not.
func vaultSource(issuer issuers.Issuer, config map[string]any) (why string) {
	var authority string
	switch {
	case issuer.From.URI != "":
		config["jwks_url"], authority = issuer.From.URI, "jwks_ca_pem"
	case issuer.From.Discovery != nil && discoveryURL(issuer) == "":
		config["oidc_discovery_url"], authority = issuer.Issuer, "oidc_discovery_ca_pem"
	default:
		return "its keys are not known here, and Vault could not find them"
	}
	if len(issuer.From.CA) > 0 {
		config[authority] = string(issuer.From.CA)
	}
	return ""
}

// vaultKeys are keys in PEM, and what they sign with.
func vaultKeys(keys []jwk.Key) (blocks, algorithms []string, err error) {
	used := map[string]bool{}
	for _, key := range keys {
		der, err := x509.MarshalPKIXPublicKey(key.Public)
		if err != nil {
			return nil, nil, fmt.Errorf("key %s: %w", key.ID, err)
		}
		blocks = append(blocks, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})))
		used[signs(key)] = true
	}
	return blocks, slices.Sorted(maps.Keys(used)), nil
}

// signs is the algorithm that Kubernetes uses with a key.
func signs(key jwk.Key) string {
	if key.Algorithm != "" {
		return key.Algorithm
	}
	public, ok := key.Public.(*ecdsa.PublicKey)
	if !ok {
		return jwk.RS256
	}
	return map[int]string{256: jwk.ES256, 384: jwk.ES384, 521: jwk.ES512}[public.Curve.Params().BitSize]
}
