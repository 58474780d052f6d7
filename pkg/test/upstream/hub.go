package upstream

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// created is the label that OCM's operator and ours put onto what they apply.
func created() map[string]string {
	return map[string]string{names.LabelCreatedByClusterManager: names.ClusterManagerName}
}

// Hub plants the hub that "clusteradm init" makes, after its operator has
// reconciled. Nothing answers its webhooks, so from then on every write of a
// ManagedCluster or a ManifestWork fails.
func Hub(tb testing.TB, admin client.Client) {
	tb.Helper()
	operatorCRD, err := manifests.RenderHubOperator(manifests.HubOperator{Version: "0.0.0", Operator: manifests.Pod{Image: "none", Replicas: 1}})
	crds(tb, admin, operatorCRD, err)
	hubCRDs, err := manifests.RenderHubCRDs(manifests.Hub{Name: names.ClusterManagerName, Namespace: names.HubNamespace, Version: "0.0.0"})
	crds(tb, admin, hubCRDs, err)
	objs := []client.Object{namespace(names.OperatorNamespace, nil), namespace(names.HubNamespace, created())}
	objs = append(objs, operator(names.ClusterManagerOperator, "registration-operator", "hub", nil)...)
	objs = append(objs, ClusterManager(), &corev1.ServiceAccount{ObjectMeta: meta(names.OperatorNamespace, names.BootstrapServiceAccount, nil)})
	for _, c := range hubComponents() {
		name := names.ClusterManagerName + "-" + c.name
		objs = append(objs, account(meta(names.HubNamespace, c.account, created()), "open-cluster-management:"+name)...)
		objs = append(objs, deployment(meta(names.HubNamespace, name, created()), c.app, c.container, Image(c.image), c.account, c.args...))
		if c.service != "" {
			objs = append(objs, service(c.service, c.app))
		}
	}
	plant(tb, admin, append(objs, WebhookConfigurations()...))
}

// ClusterManager is clusteradm's.
func ClusterManager() *operatorv1.ClusterManager {
	return &operatorv1.ClusterManager{
		ObjectMeta: metav1.ObjectMeta{Name: names.ClusterManagerName, Finalizers: []string{names.FinalizerClusterManager}},
		Spec: operatorv1.ClusterManagerSpec{
			RegistrationImagePullSpec: Image("registration"), WorkImagePullSpec: Image("work"),
			PlacementImagePullSpec: Image("placement"), AddOnManagerImagePullSpec: Image("addon-manager"),
			DeployOption: operatorv1.ClusterManagerDeployOption{Mode: operatorv1.InstallModeDefault},
		},
	}
}

// hubComponent is a Deployment of the hub.
type hubComponent struct {
	name, app, container, image, account, service string
	args                                          []string
}

func hubComponents() []hubComponent {
	webhook := func(name, image, account, service, program string) hubComponent {
		return hubComponent{
			name: name, app: names.ClusterManagerName + "-" + name, container: name, image: image, account: account,
			service: service, args: []string{program, "webhook-server", "--port=9443"},
		}
	}
	return []hubComponent{
		{
			name: "registration-controller", app: names.AppHubRegistration, container: "hub-registration-controller",
			image: "registration", account: names.HubRegistrationServiceAccount, args: []string{"/registration", "controller"},
		},
		{
			name: "placement-controller", app: "clustermanager-placement-controller", container: "placement-controller",
			image: "placement", account: "placement-controller-sa", args: []string{"/placement", "controller"},
		},
		{
			name: "addon-manager-controller", app: names.AppHubAddOnManager, container: "addon-manager-controller",
			image: "addon-manager", account: names.HubAddOnManagerServiceAccount, args: []string{"/addon", "manager"},
		},
		webhook("registration-webhook", "registration", "registration-webhook-sa", "cluster-manager-registration-webhook", "/registration"),
		webhook("work-webhook", "work", "work-webhook-sa", "cluster-manager-work-webhook", "/work"),
		webhook("addon-webhook", "addon-manager", names.HubAddOnWebhookServiceAccount, names.AddOnWebhookService, "/addon"),
	}
}

func service(name, app string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: meta(names.HubNamespace, name, created()),
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": app},
			Ports:    []corev1.ServicePort{{Name: "webhook", Port: names.AddOnWebhookPort}},
		},
	}
}

// WebhookConfigurations are those of the hub.
func WebhookConfigurations() []client.Object {
	calls := func(service, path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
			Namespace: names.HubNamespace, Name: service, Path: &path, Port: new(int32(names.AddOnWebhookPort)),
		}}
	}
	rules := func(group, version, resource string) []admissionregistrationv1.RuleWithOperations {
		return []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource}},
		}}
	}
	const clusters, works = "cluster.open-cluster-management.io", "work.open-cluster-management.io"
	registration := "cluster-manager-registration-webhook"
	validating := func(name string, config admissionregistrationv1.WebhookClientConfig, rules []admissionregistrationv1.RuleWithOperations) client.Object {
		return &admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: meta("", name, created()),
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: name, ClientConfig: config, Rules: rules, FailurePolicy: new(admissionregistrationv1.Fail),
				SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1beta1", "v1"},
				TimeoutSeconds: new(int32(10)),
			}},
		}
	}
	mutators := "managedclustermutators.admission." + clusters
	return []client.Object{
		validating("managedclustervalidators.admission."+clusters,
			calls(registration, "/validate-cluster-open-cluster-management-io-v1-managedcluster"), rules(clusters, "v1", "managedclusters")),
		validating("managedclustersetbindingvalidators.admission."+clusters,
			calls(registration, "/validate-cluster-open-cluster-management-io-v1beta2-managedclustersetbinding"), rules(clusters, "v1beta2", "managedclustersetbindings")),
		validating("manifestworkvalidators.admission."+works,
			calls("cluster-manager-work-webhook", "/validate-work-open-cluster-management-io-v1-manifestwork"), rules(works, "v1", "manifestworks")),
		&admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: meta("", mutators, created()),
			Webhooks: []admissionregistrationv1.MutatingWebhook{{
				Name: mutators, ClientConfig: calls(registration, "/mutate-cluster-open-cluster-management-io-v1-managedcluster"),
				Rules: rules(clusters, "v1", "managedclusters"), FailurePolicy: new(admissionregistrationv1.Fail),
				SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1beta1", "v1"},
				TimeoutSeconds: new(int32(10)),
			}},
		},
	}
}
