// Package samples_test checks the samples: Envoy's against Envoy's own types,
// strictly, the others as far as their types are here.
package samples_test

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/stream/v3" // A type in a typed_config.
	extauthzv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3" // A type in a typed_config.
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3" // A type in a typed_config.
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"        // A type in a typed_config.
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
)

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// unmarshal reads YAML as Envoy does: an unknown field is an error.
func unmarshal(t *testing.T, name string, into proto.Message) {
	t.Helper()
	data, err := yaml.YAMLToJSONStrict(read(t, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := protojson.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if v, ok := into.(interface{ ValidateAll() error }); ok {
		if err := v.ValidateAll(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEnvoy(t *testing.T) {
	t.Parallel()
	var bootstrap bootstrapv3.Bootstrap
	unmarshal(t, "envoy.yaml", &bootstrap)
	var manager hcmv3.HttpConnectionManager
	filter := bootstrap.GetStaticResources().GetListeners()[0].GetFilterChains()[0].GetFilters()[0]
	if err := filter.GetTypedConfig().UnmarshalTo(&manager); err != nil {
		t.Fatal(err)
	}
	filters := manager.GetHttpFilters()
	var stripped headermutationv3.HeaderMutation
	if err := filters[0].GetTypedConfig().UnmarshalTo(&stripped); err != nil {
		t.Fatalf("the first filter removes headers: %v", err)
	}
	if got := stripped.GetMutations().GetRequestMutations()[0].GetRemoveOnMatch().GetKeyMatcher().GetPrefix(); got != "impersonate-" {
		t.Errorf("it removes %q", got)
	}
	var authz extauthzv3.ExtAuthz
	if err := filters[1].GetTypedConfig().UnmarshalTo(&authz); err != nil {
		t.Fatalf("the second filter asks: %v", err)
	}
	expectClosed(t, &authz)
	if !authz.GetGrpcService().GetTimeout().IsValid() || authz.GetGrpcService().GetTimeout().GetSeconds() < 1 {
		t.Errorf("the timeout is %v", authz.GetGrpcService().GetTimeout())
	}
}

func TestEnvoyHTTP(t *testing.T) {
	t.Parallel()
	var filter hcmv3.HttpFilter
	unmarshal(t, "envoy-http.yaml", &filter)
	var authz extauthzv3.ExtAuthz
	if err := filter.GetTypedConfig().UnmarshalTo(&authz); err != nil {
		t.Fatal(err)
	}
	expectClosed(t, &authz)
	patterns := authz.GetHttpService().GetAuthorizationResponse().GetAllowedUpstreamHeaders().GetPatterns()
	if len(patterns) != 1 || patterns[0].GetExact() != "authorization" {
		t.Errorf("the upstream gets %v", patterns)
	}
}

// expectClosed expects a filter that lets nothing through without an answer.
func expectClosed(t *testing.T, authz *extauthzv3.ExtAuthz) {
	t.Helper()
	if authz.GetFailureModeAllow() || authz.GetStatusOnError().GetCode() != 503 {
		t.Errorf("failure_mode_allow %v, status_on_error %v", authz.GetFailureModeAllow(), authz.GetStatusOnError())
	}
	if err := authz.ValidateAll(); err != nil {
		t.Error(err)
	}
}

// TestObjects reads what an API server would be given. Their types are not
// here, so that only their form is checked.
func TestObjects(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"istio.yaml", "external-secrets.yaml"} {
		for document := range bytes.SplitSeq(read(t, name), []byte("\n---\n")) {
			var obj unstructured.Unstructured
			data, err := yaml.YAMLToJSONStrict(document)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if err := obj.UnmarshalJSON(data); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if obj.GetName() == "" || obj.GetAPIVersion() == "" {
				t.Errorf("%s: an object without a name or a version: %v", name, obj.Object)
			}
		}
	}
	var mesh struct {
		ExtensionProviders []struct {
			Name              string
			EnvoyExtAuthzGrpc struct {
				Service       string
				Port          int
				Timeout       string
				FailOpen      bool
				StatusOnError string
			}
		}
	}
	if err := yaml.UnmarshalStrict(read(t, "istio-mesh.yaml"), &mesh); err != nil {
		t.Fatal(err)
	}
	provider := mesh.ExtensionProviders[0].EnvoyExtAuthzGrpc
	if provider.FailOpen || provider.StatusOnError != "503" || provider.Timeout == "" || provider.Port != names.TokenAuthorizerPort {
		t.Errorf("%+v", provider)
	}
}

func TestConfiguration(t *testing.T) {
	t.Parallel()
	parsed, err := config.Load("clusters.yaml", config.Options{
		Strict: true, Self: policy.Account{Namespace: names.HubNamespace, Name: names.TokenAuthorizer},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(parsed.Clusters) != 2 {
		t.Errorf("%d clusters", len(parsed.Clusters))
	}
	harmless(t, parsed.Lint())
}

// TestPolicies reads the objects strictly, as an API server does, and lints them.
func TestPolicies(t *testing.T) {
	t.Parallel()
	var objects config.Objects
	for document := range bytes.SplitSeq(read(t, "policies.yaml"), []byte("\n---\n")) {
		var policy v1alpha1.TokenExchangePolicy
		var defaults v1alpha1.TokenExchangeDefaults
		switch {
		case bytes.Contains(document, []byte("kind: TokenExchangeDefaults")):
			if err := yaml.UnmarshalStrict(document, &defaults); err != nil {
				t.Fatal(err)
			}
			objects.Defaults = &defaults
		case bytes.Contains(document, []byte("kind: TokenExchangePolicy")):
			if err := yaml.UnmarshalStrict(document, &policy); err != nil {
				t.Fatal(err)
			}
			objects.Policies = append(objects.Policies, policy)
		}
	}
	got := config.FromHub(objects, config.Options{Self: policy.Account{Namespace: names.HubNamespace, Name: names.TokenAuthorizer}})
	if len(got.Clusters) != 3 { // The defaults have an audience for all others.
		t.Errorf("%d clusters", len(got.Clusters))
	}
	harmless(t, slices.DeleteFunc(got.Lint(), func(f policy.Finding) bool { return strings.HasPrefix(f.Path, config.DefaultsPath) }))
}

func harmless(t *testing.T, findings []policy.Finding) {
	t.Helper()
	for _, finding := range findings {
		if finding.Severity != policy.Info {
			t.Errorf("%v", finding)
		}
	}
}
