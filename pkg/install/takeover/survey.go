package takeover

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
)

// Survey has the objects that a take-over depends on, as they were read.
type Survey struct {
	// Found is the installation that runs, or its remains; nil if there is none.
	Found *origin.Installation
	// Resources are the ClusterManagers, or Klusterlets, as they are stored: they may
	// have fields that our API module does not know.
	Resources []unstructured.Unstructured
	// CRDs are the CRDs that our installation writes.
	CRDs []apiextensionsv1.CustomResourceDefinition
	// Users counts objects of users that a component of OCM serves which we do not
	// have, by resource.
	Users map[string]int
	// Grants are the permissions that our add-on manager needs for the existing AddOnTemplates.
	Grants []string
	// Left are objects that OCM's operator applied and ours did not.
	Left []client.Object
	// Helm are the Secrets in which Helm keeps the releases that installed OCM.
	Helm []client.Object

	side side
	// ours are the CRDs of this release.
	ours []*unstructured.Unstructured
}

// side describes the differences between a hub and an agent.
type side struct {
	// what is the installation in words.
	what string
	// kind is the operator's resource, called name.
	kind schema.GroupVersionKind
	name string
	// label has the name of that resource on everything that an operator applies, and
	// manager is the field manager of ours.
	label, manager string
	// namespace is where the components run.
	namespace string
}

// Empty reports whether there is nothing to take over.
func (s *Survey) Empty() bool { return s.Found == nil && len(s.Left)+len(s.Helm) == 0 }

// SurveyHub reads what there is of OCM's hub. ours are the CRDs of our hub.
func SurveyHub(ctx context.Context, reader client.Reader, ours []*unstructured.Unstructured) (*Survey, error) {
	found, err := origin.Hub(ctx, reader)
	if err != nil {
		return nil, err
	}
	s := &Survey{Found: found, ours: ours, Users: map[string]int{}, side: side{
		what: "hub", kind: operatorKind("ClusterManager"), name: names.ClusterManagerName, namespace: names.HubNamespace,
		label: names.LabelCreatedByClusterManager, manager: names.FieldManagerHubOperator,
	}}
	for kind, version := range map[string]string{"Placement": "v1beta1", "ManagedClusterSet": "v1beta2"} {
		objs, err := list(ctx, reader, schema.GroupVersionKind{Group: "cluster.open-cluster-management.io", Version: version, Kind: kind})
		if err != nil {
			return nil, err
		}
		s.Users[kind] = len(slices.DeleteFunc(objs, madeByOCM))
	}
	if err := s.readTemplates(ctx, reader); err != nil {
		return nil, err
	}
	return s, s.read(ctx, reader)
}

// madeByOCM reports whether an object is one of the cluster sets that every hub of OCM has.
func madeByOCM(u unstructured.Unstructured) bool {
	return u.GetKind() == "ManagedClusterSet" && slices.Contains([]string{"default", "global"}, u.GetName())
}

// SurveyAgent reads what there is of OCM's agent. ours are the CRDs of our agent.
func SurveyAgent(ctx context.Context, reader client.Reader, ours []*unstructured.Unstructured) (*Survey, error) {
	found, err := origin.Agent(ctx, reader)
	if err != nil {
		return nil, err
	}
	s := &Survey{Found: found, ours: ours, side: side{
		what: "agent", kind: operatorKind("Klusterlet"), name: names.KlusterletName, namespace: names.AgentNamespace,
		label: names.LabelCreatedByKlusterlet, manager: names.FieldManagerAgentOperator,
	}}
	return s, s.read(ctx, reader)
}

func operatorKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "operator.open-cluster-management.io", Version: "v1", Kind: kind}
}

// read reads what both sides have.
func (s *Survey) read(ctx context.Context, reader client.Reader) error {
	var err error
	if s.Resources, err = list(ctx, reader, s.side.kind); err != nil {
		return err
	}
	if namespace, _, _ := unstructured.NestedString(s.resource().Object, "spec", "namespace"); namespace != "" {
		s.side.namespace = namespace
	}
	var crds apiextensionsv1.CustomResourceDefinitionList
	if err := reader.List(ctx, &crds); err != nil {
		return fmt.Errorf("CRDs: %w", err)
	}
	for i := range crds.Items {
		if slices.ContainsFunc(s.ours, func(u *unstructured.Unstructured) bool { return u.GetName() == crds.Items[i].Name }) {
			s.CRDs = append(s.CRDs, crds.Items[i])
		}
	}
	if s.Left, err = s.unused(ctx, reader); err != nil {
		return err
	}
	return s.readHelm(ctx, reader)
}

// resource is the one that is served; one without content if there is none.
func (s *Survey) resource() *unstructured.Unstructured {
	for i := range s.Resources {
		if s.Resources[i].GetName() == s.side.name {
			return &s.Resources[i]
		}
	}
	return &unstructured.Unstructured{}
}

// list lists objects of a kind, none where the kind does not exist.
func list(ctx context.Context, reader client.Reader, kind schema.GroupVersionKind) ([]unstructured.Unstructured, error) {
	objs := &unstructured.UnstructuredList{}
	objs.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := reader.List(ctx, objs)
	if apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind.Kind, err)
	}
	return objs.Items, nil
}

// orphans returns the ReplicaSets in the namespace of the components that no Deployment
// owns and whose pods run a program of OCM.
func (s *Survey) orphans(ctx context.Context, reader client.Reader) ([]client.Object, error) {
	var sets appsv1.ReplicaSetList
	if err := reader.List(ctx, &sets, client.InNamespace(s.side.namespace)); err != nil {
		return nil, fmt.Errorf("ReplicaSets: %w", err)
	}
	var out []client.Object
	for i := range sets.Items {
		if metav1.GetControllerOf(&sets.Items[i]) == nil && origin.Theirs(&sets.Items[i].Spec.Template.Spec) {
			out = append(out, &sets.Items[i])
		}
	}
	return out, nil
}
