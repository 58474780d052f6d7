package upstream

import (
	_ "embed"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

// registry and tag are of the images that clusteradm installs.
const (
	registry = "registry.example.com/open-cluster-management/"
	tag      = ":v1.3.1"
)

// OperatorImage is the image of both operators.
const OperatorImage = registry + "registration-operator" + tag

// Image is the image of a component.
func Image(component string) string { return registry + component + tag }

// WorkAgent is the Deployment that applies the hub's ManifestWorks.
const WorkAgent = names.KlusterletName + "-work-agent"

var (
	//go:embed hub.yaml
	hub string
	//go:embed klusterlet.yaml
	klusterlet string
)

// Hub plants the hub that "clusteradm init" makes, after its operator has
// reconciled. Nothing answers its webhooks, so from then on every write of a
// ManagedCluster or a ManifestWork fails.
func Hub(tb testing.TB, admin client.Client) {
	tb.Helper()
	operatorCRD, err := manifests.RenderHubOperator(manifests.HubOperator{Version: "0.0.0", Operator: manifests.Pod{Image: "none", Replicas: 1}})
	crds(tb, admin, operatorCRD, err)
	hubCRDs, err := manifests.RenderHubCRDs(manifests.Hub{Name: names.ClusterManagerName, Namespace: names.HubNamespace, Version: "0.0.0"})
	crds(tb, admin, hubCRDs, err)
	installation.Create(tb, admin, objects(tb, hub)...)
}

// WebhookConfigurations are the hub's webhook configurations.
func WebhookConfigurations(tb testing.TB) []client.Object {
	tb.Helper()
	var found []client.Object
	for _, obj := range objects(tb, hub) {
		if strings.HasSuffix(obj.GetObjectKind().GroupVersionKind().Kind, "WebhookConfiguration") {
			found = append(found, obj)
		}
	}
	return found
}

// Klusterlet plants the agent that "clusteradm join" makes for a cluster, after
// its operator has reconciled.
func Klusterlet(tb testing.TB, admin client.Client, cluster string) {
	tb.Helper()
	operatorCRD, err := manifests.RenderKlusterletOperator(manifests.KlusterletOperator{
		Version: "0.0.0", Operator: manifests.Pod{Image: "none", Replicas: 1}, Spec: operatorv1.KlusterletSpec{Namespace: names.AgentNamespace},
	})
	crds(tb, admin, operatorCRD, err)
	agentCRDs, err := manifests.RenderKlusterletCRDs(manifests.Klusterlet{Name: names.KlusterletName, Version: "0.0.0"})
	crds(tb, admin, agentCRDs, err)
	installation.Create(tb, admin, objects(tb, strings.ReplaceAll(klusterlet, "CLUSTER", cluster))...)
}

// objects reads a YAML stream.
func objects(tb testing.TB, stream string) []client.Object {
	tb.Helper()
	var objs []client.Object
	for document := range strings.SplitSeq(stream, "\n---\n") {
		obj := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(document), &obj.Object); err != nil {
			tb.Fatal(err)
		}
		objs = append(objs, obj)
	}
	return objs
}

// crds creates the CRDs of a rendering without the marks of ours.
func crds(tb testing.TB, admin client.Client, objs []*unstructured.Unstructured, err error) {
	tb.Helper()
	for _, obj := range objs {
		obj.SetAnnotations(nil)
		obj.SetLabels(nil)
	}
	installation.Some(tb, admin, objs, err, installation.CRD)
}
