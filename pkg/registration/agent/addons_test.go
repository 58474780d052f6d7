package agent_test

import (
	"errors"
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/csr"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/token"
)

// TestAddOns joins a hub that serves no add-ons and gives the agent no right to
// see any: its lease is renewed all the same. As soon as that changes an add-on
// gets its token over the agent's connection.
func TestAddOns(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	s := newSpoke(t, h, "addons")
	s.withAddOns(t, driver.Token)
	p := s.start(t)
	h.join(t, p, s.cluster)
	h.serveAddOns(t)

	h.register(t, s, "one")
	account := h.serveToken(t, s, "one")
	eventually(t, "the token", func() (bool, error) {
		secret := s.secret(t, names.AddOnHubKubeconfigSecret("one"))
		if secret == nil {
			return false, nil
		}
		var who authenticationv1.SelfSubjectReview
		err := h.ClientFor(t, h.ConfigForToken(string(secret.Data["token"]))).Create(t.Context(), &who)
		return who.Status.UserInfo.Username == names.ServiceAccountUser(account.Namespace, account.Name), err
	})
	// It is in the Secret before the agent has written of it anywhere else.
	eventually(t, "the end of the token is a metric", func() (bool, error) {
		value, ok, err := p.gathered("ocm_addon_credential_expiry_seconds")
		return ok && value > 0, err
	})
}

// tokenSeconds is how long the tokens of add-ons are valid: another time than the
// certificates of the hubs whose tests move the clock.
const tokenSeconds = 5000 * 3600

// withAddOns gives the agent what it needs to register add-ons.
func (s *spoke) withAddOns(t *testing.T, auth driver.AuthType) {
	t.Helper()
	base, err := manifests.RenderKlusterletBase(manifests.Klusterlet{Name: s.cluster, Namespace: s.namespace, DockerConfig: []byte("{}"), AddOnManagement: true})
	install(t, s.admin, base, err, "ClusterRole", "ClusterRoleBinding")
	s.config.AddOns = &agent.AddOns{
		NewDriver: func(cluster string, addOn *addonv1beta1.ManagedClusterAddOn, registration addonv1beta1.RegistrationConfig) driver.AddOn {
			if auth == driver.CSR || registration.Type == addonv1beta1.CustomSigner {
				return csr.NewAddOn(csr.AddOnConfig{Cluster: cluster, AddOn: addOn, Registration: registration, Clock: s.config.Clock})
			}
			return token.NewAddOn(token.Config{Cluster: cluster, AddOn: addOn, Registration: registration, ExpirationSeconds: tokenSeconds, Clock: s.config.Clock})
		},
	}
}

// addOn changes an add-on of a cluster as the hub.
func (h *hub) addOn(t *testing.T, s *spoke, name string, change func(*addonv1beta1.ManagedClusterAddOn) error) {
	t.Helper()
	eventually(t, "a change of "+name, func() (bool, error) {
		addOn := &addonv1beta1.ManagedClusterAddOn{}
		if err := h.admin.Get(t.Context(), client.ObjectKey{Namespace: s.cluster, Name: name}, addOn); err != nil {
			return false, err
		}
		err := change(addOn)
		return err == nil, err
	})
}

// register makes an add-on as its hub controller does, and waits until the agent
// has declared whom it asks a credential for.
func (h *hub) register(t *testing.T, s *spoke, name string) {
	t.Helper()
	create(t, h.admin, &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: s.cluster, Name: name}})
	h.addOn(t, s, name, func(addOn *addonv1beta1.ManagedClusterAddOn) error {
		addOn.Status.Namespace = s.namespace
		addOn.Status.Registrations = []addonv1beta1.RegistrationConfig{{Type: addonv1beta1.KubeClient, KubeClient: &addonv1beta1.KubeClientConfig{}}}
		return h.admin.Status().Update(t.Context(), addOn)
	})
	h.addOn(t, s, name, func(addOn *addonv1beta1.ManagedClusterAddOn) error {
		if addOn.Status.Registrations[0].KubeClient.Subject.User == "" {
			return errors.New("no subject")
		}
		return nil
	})
}

// serveToken does what the hub's add-on manager does for an add-on with a token.
func (h *hub) serveToken(t *testing.T, s *spoke, name string) names.TokenServiceAccount {
	t.Helper()
	account := h.addOnAccount(t, s.cluster, name)
	h.addOn(t, s, name, func(addOn *addonv1beta1.ManagedClusterAddOn) error {
		apimeta.SetStatusCondition(&addOn.Status.Conditions, metav1.Condition{
			Type: names.ConditionTokenInfrastructureReady, Status: metav1.ConditionTrue, Reason: names.ReasonTokenInfrastructureReady, Message: account.Message(),
		})
		return h.admin.Status().Update(t.Context(), addOn)
	})
	return account
}

// serveAddOns installs the CRD and gives the agents their rights.
func (h *hub) serveAddOns(t *testing.T) {
	t.Helper()
	const name = "managedclusteraddons.addon.open-cluster-management.io"
	crds, err := manifests.RenderHubCRDs(manifests.Hub{Name: names.ClusterManagerName, Namespace: names.HubNamespace, DockerConfig: []byte("{}")})
	crds = slices.DeleteFunc(crds, func(o *unstructured.Unstructured) bool { return o.GetName() != name })
	for _, o := range crds {
		unstructured.RemoveNestedField(o.Object, "spec", "conversion") // No webhook runs here.
	}
	install(t, h.admin, crds, err, crd)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: names.ClusterRoleRegistration}}
	if err := h.admin.Get(t.Context(), client.ObjectKeyFromObject(role), role); err != nil {
		t.Fatal(err)
	}
	role.Rules = append(role.Rules,
		rbacv1.PolicyRule{APIGroups: []string{addonv1beta1.GroupVersion.Group}, Resources: []string{"managedclusteraddons"}, Verbs: []string{"get", "list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{addonv1beta1.GroupVersion.Group}, Resources: []string{"managedclusteraddons/status"}, Verbs: []string{"patch", "update"}},
	)
	if err := h.admin.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
}

// addOnAccount makes what the hub's add-on manager makes for an add-on.
func (h *hub) addOnAccount(t *testing.T, cluster, addOn string) names.TokenServiceAccount {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: names.AddOnServiceAccount(cluster, addOn)}}
	role := names.AddOnTokenRole(addOn)
	for _, o := range []client.Object{
		account,
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: role}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{account.Name}, Verbs: []string{"create"}},
		}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: role}, Subjects: clusterSubjects(cluster), RoleRef: rbacv1.RoleRef{Kind: "Role", Name: role, APIGroup: rbacv1.GroupName}},
	} {
		if err := h.admin.Create(t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	return names.TokenServiceAccount{Namespace: cluster, Name: account.Name, UID: string(account.UID)}
}
