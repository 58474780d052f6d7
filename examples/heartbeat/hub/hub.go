// Package hub is the add-on's part on the hub. addon-framework does the work;
// what is written here is what makes this add-on this add-on: which subject
// may do what, whose certificates are approved and how an agent is deployed.
//
// Nothing in here depends on the driver that a cluster's registration uses. The subject
// is taken from the add-on's status, where the cluster's agent and the framework
// put it: a user and groups with driver csr, a ServiceAccount with driver token.
package hub

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"slices"
	"text/template"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"open-cluster-management.io/addon-framework/pkg/addonmanager"
	"open-cluster-management.io/addon-framework/pkg/agent"
	"open-cluster-management.io/addon-framework/pkg/utils"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// agentManifest is what runs on a managed cluster.
//
//go:embed agent.yaml
var agentManifest string

// Options are what the command line says.
type Options struct {
	// Kubeconfig is the hub's; empty means in-cluster.
	Kubeconfig string
	AddOn      string
	// ClusterRole is bound to the add-on's subject in the cluster's namespace.
	ClusterRole string
	// Image runs the agents. Nothing is deployed without it.
	Image string
	// Interval is Interval between two heartbeats.
	Interval time.Duration
}

// Run serves the add-on until ctx ends.
func Run(ctx context.Context, options Options) error {
	config, err := clientcmd.BuildConfigFromFlags("", options.Kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	manager, err := addonmanager.New(config)
	if err != nil {
		return err
	}
	if err := manager.AddAgent(&addOn{Options: options, client: client}); err != nil {
		return err
	}
	if err := manager.Start(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

type addOn struct {
	Options
	client kubernetes.Interface
}

// GetAgentAddonOptions says how the add-on registers.
func (a *addOn) GetAgentAddonOptions() agent.AgentAddonOptions {
	return agent.AgentAddonOptions{
		AddonName: a.AddOn,
		Registration: &agent.RegistrationOption{
			Configurations: agent.KubeClientSignerConfigurations(a.AddOn, a.AddOn),
			// Asked with driver csr only.
			CSRApproveCheck:  utils.DefaultCSRApprover(a.AddOn),
			PermissionConfig: a.bind,
		},
		// The agent keeps a lease on its cluster.
		HealthProber: &agent.HealthProber{Type: agent.HealthProberTypeLease},
	}
}

// bind binds the subject in the status to the ClusterRole in the cluster's namespace.
// The framework calls it again when the subject changes. The identities of both drivers are
// bound as well: when a cluster changes its driver, Pods have the earlier credential until
// the kubelet has put the new one into their volumes.
func (a *addOn) bind(ctx context.Context, cluster *clusterv1.ManagedCluster, addon *addonv1beta1.ManagedClusterAddOn) error {
	subjects := utils.BuildSubjectsFromRegistration(addon, certificatesv1.KubeAPIServerClientSignerName)
	if len(subjects) == 0 {
		return &agent.SubjectNotReadyError{}
	}
	for _, s := range []rbacv1.Subject{
		{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: fmt.Sprintf("system:open-cluster-management:cluster:%s:addon:%s", cluster.Name, a.AddOn)},
		{Kind: rbacv1.ServiceAccountKind, Namespace: cluster.Name, Name: fmt.Sprintf("%s-%s-agent", cluster.Name, a.AddOn)},
	} {
		if !slices.Contains(subjects, s) {
			subjects = append(subjects, s)
		}
	}
	_, _, err := utils.ApplyRoleBinding(ctx, a.client.RbacV1(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster.Name,
			Name:      a.AddOn + "-agent",
			// The binding goes when the add-on goes.
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: addonv1beta1.GroupVersion.String(),
				Kind:       "ManagedClusterAddOn",
				Name:       addon.Name,
				UID:        addon.UID,
			}},
		},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: a.ClusterRole},
		Subjects: subjects,
	})
	return err
}

// Manifests are the objects that the framework puts in a ManifestWork.
func (a *addOn) Manifests(_ context.Context, cluster *clusterv1.ManagedCluster, addon *addonv1beta1.ManagedClusterAddOn) ([]runtime.Object, error) {
	if a.Image == "" {
		return nil, nil
	}
	t, err := template.New("agent").Option("missingkey=error").Parse(agentManifest)
	if err != nil {
		return nil, err
	}
	var rendered bytes.Buffer
	err = t.Execute(&rendered, map[string]string{
		"AddOn":     a.AddOn,
		"Cluster":   cluster.Name,
		"Image":     a.Image,
		"Interval":  a.Interval.String(),
		"Namespace": addon.Status.Namespace,
	})
	if err != nil {
		return nil, err
	}
	var objects []runtime.Object
	for document := range bytes.SplitSeq(rendered.Bytes(), []byte("\n---\n")) {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return nil, fmt.Errorf("the agent's manifest: %w", err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}
