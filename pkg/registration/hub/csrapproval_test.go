package hub_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/csr"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/drivertest"
)

// registration is a CSR in the making; a test changes what it wants.
type registration struct {
	object  certificatesv1.CertificateSigningRequest
	request x509.CertificateRequest
	key     *ecdsa.PrivateKey
}

func newRegistration(t *testing.T, cluster string) *registration {
	t.Helper()
	key, _, err := pemutil.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return &registration{
		key: key,
		request: x509.CertificateRequest{Subject: pkix.Name{
			CommonName:   names.AgentUser(cluster, "a1"),
			Organization: []string{names.ClusterGroup(cluster), names.GroupManagedClusters},
		}},
		object: certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{GenerateName: cluster + "-", Labels: map[string]string{names.LabelClusterName: cluster}},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				SignerName: certificatesv1.KubeAPIServerClientSignerName,
				Usages:     csr.Usages(),
			},
		},
	}
}

// submit creates the CSR as whoever c is.
func (r *registration) submit(t *testing.T, c client.Client) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &r.request, r.key)
	if err != nil {
		t.Fatal(err)
	}
	object := r.object.DeepCopy()
	object.Spec.Request = pemutil.EncodeRequest(der)
	// The API server learns of rights that were just given in its own time.
	eventually(t, object.Name+" is taken", func(ctx context.Context) (bool, error) {
		err := c.Create(ctx, object)
		if apierrors.IsForbidden(err) {
			return false, nil
		}
		return err == nil, err
	})
	return object
}

func (e *env) awaitApproved(t *testing.T, object *certificatesv1.CertificateSigningRequest) {
	t.Helper()
	eventually(t, object.Name+" is approved", func(ctx context.Context) (bool, error) {
		err := e.admin.Get(ctx, client.ObjectKeyFromObject(object), object)
		return len(object.Status.Conditions) > 0, err
	})
	got := object.Status.Conditions[0]
	if got.Type != certificatesv1.CertificateApproved || got.Reason != names.ReasonAutoApproved || got.Message != names.MessageAutoApproved {
		t.Errorf("%s: got %+v", object.Name, got)
	}
}

func (e *env) checkUndecided(t *testing.T, what string, object *certificatesv1.CertificateSigningRequest) {
	t.Helper()
	if err := e.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	if len(object.Status.Conditions) > 0 {
		t.Errorf("%s: %+v", what, object.Status.Conditions)
	}
}

// TestRenewals: the hub renews an accepted agent's certificate and nothing else.
func TestRenewals(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start(t, defaults(), nil)
	e.cluster(t, "c1", acceptedFromTheStart)
	e.cluster(t, "c2", acceptedFromTheStart)
	e.awaitAccepted(t, "c1")
	e.awaitAccepted(t, "c2")
	agent, other := e.agent(t, "c1"), e.agent(t, "c2")

	object := newRegistration(t, "c1").submit(t, agent)
	e.awaitApproved(t, object)
	eventually(t, "the certificate is issued", func(ctx context.Context) (bool, error) {
		err := e.admin.Get(ctx, client.ObjectKeyFromObject(object), object)
		return len(object.Status.Certificate) > 0, err
	})

	hostile := map[string]*certificatesv1.CertificateSigningRequest{}
	for what, change := range map[string]func(*registration){
		"another cluster's subject": func(r *registration) { r.request.Subject.CommonName = names.AgentUser("c2", "a1") },
		"another agent's subject":   func(r *registration) { r.request.Subject.CommonName = names.AgentUser("c1", "a2") },
		"an extra organization": func(r *registration) {
			r.request.Subject.Organization = append(r.request.Subject.Organization, "example:admins")
		},
		"a DNS name": func(r *registration) { r.request.DNSNames = []string{"kubernetes"} },
		"an extra usage": func(r *registration) {
			r.object.Spec.Usages = append(r.object.Spec.Usages, certificatesv1.UsageServerAuth)
		},
		"no label":          func(r *registration) { r.object.Labels = nil },
		"an add-on's label": func(r *registration) { r.object.Labels[names.LabelAddOnName] = "x" },
	} {
		r := newRegistration(t, "c1")
		change(r)
		hostile[what] = r.submit(t, agent)
	}
	hostile["a requester who is the administrator"] = newRegistration(t, "c1").submit(t, e.admin)
	e.awaitApproved(t, newRegistration(t, "c1").submit(t, agent)) // By now the others were looked at.
	for what, object := range hostile {
		e.checkUndecided(t, what, object)
	}

	e.deny(t, "c2")
	// RBAC alone would let it pass: the hub's word counts as well.
	e.allow(t, "renewer", names.AgentUser("c2", "a1"), rbacv1.PolicyRule{
		APIGroups: []string{names.RegisterGroup}, Resources: []string{names.ResourceClientCertificates}, Verbs: []string{"renew"},
	}, csrCreation())
	denied := newRegistration(t, "c2").submit(t, other)
	e.awaitApproved(t, newRegistration(t, "c1").submit(t, agent))
	e.checkUndecided(t, "a denied cluster", denied)
	e.accept(t, "c2")
	e.awaitApproved(t, denied)
}

func csrCreation() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{certificatesv1.GroupName}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create"},
	}
}

// allow gives a user rules of the administrator's choice.
func (e *env) allow(t *testing.T, name, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	for _, object := range []client.Object{role, binding} {
		if err := e.admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFirstRequests: with the gate on, listed users need no person, as long as
// nothing else claims the name.
func TestFirstRequests(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start(t, approving(defaults(), "listed", "also-listed"), nil)
	for _, user := range []string{"listed", "also-listed", "unlisted"} {
		e.allow(t, user, user, csrCreation())
	}
	as := func(user string) client.Client { return e.cp.ClientFor(t, e.cp.ConfigFor(t, user)) }

	unlisted := newRegistration(t, "c0").submit(t, as("unlisted"))
	first := newRegistration(t, "c1")
	approved := first.submit(t, as("listed"))
	e.awaitApproved(t, approved)
	e.checkUndecided(t, "an unlisted user", unlisted)

	again := first.submit(t, as("listed"))
	e.awaitApproved(t, again)
	otherKey := newRegistration(t, "c1").submit(t, as("listed"))
	otherUser := first.submit(t, as("also-listed"))
	e.awaitApproved(t, newRegistration(t, "c2").submit(t, as("listed")))
	e.checkUndecided(t, "a second key", otherKey)
	e.checkUndecided(t, "a second requester", otherUser)
	e.awaitEvent(t, "RegistrationRivalry", "registers cluster c1")

	// A live agent has the name, though no request of it is left.
	e.bare(t, "c3")
	cluster := e.awaitAccepted(t, "c3")
	if cluster.Annotations[names.AnnotationAutoAccepted] == "" || !cluster.Spec.HubAcceptsClient {
		t.Errorf("c3 was not accepted by the gate: %+v", cluster)
	}
	e.patchAvailable(t, "c3", metav1.ConditionTrue)
	late := newRegistration(t, "c3").submit(t, as("listed"))
	e.awaitEvent(t, "RegistrationRivalry", "is running")
	e.checkUndecided(t, "a name in use", late)
	// The agent itself says False: its API server is ill, and it is alive.
	e.patchAvailable(t, "c3", metav1.ConditionFalse)
	ill := newRegistration(t, "c3").submit(t, as("listed"))
	e.awaitApproved(t, newRegistration(t, "c5").submit(t, as("listed")))
	e.checkUndecided(t, "a name whose agent reports an unhealthy API server", late)
	e.checkUndecided(t, "a name whose agent reports an unhealthy API server", ill)
	if err := e.admin.Delete(t.Context(), ill); err != nil {
		t.Fatal(err)
	}
	e.patchAvailable(t, "c3", metav1.ConditionUnknown)
	e.awaitApproved(t, late)

	// A person's denial sticks.
	e.deny(t, "c3")
	e.bare(t, "c4")
	e.awaitAccepted(t, "c4")
	if e.get(t.Context(), t, "c3").Spec.HubAcceptsClient {
		t.Error("a denied cluster was accepted again")
	}
}

// TestConflictingFirstRequests: what counts as a conflict, and what happens
// when it is over.
func TestConflictingFirstRequests(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start(t, approving(defaults(), "listed"), nil)
	for _, user := range []string{"listed", "unlisted"} {
		e.allow(t, user, user, csrCreation())
	}
	as := func(user string) client.Client { return e.cp.ClientFor(t, e.cp.ConfigFor(t, user)) }

	t.Run("a user whose requests only a person approves does not stop a listed one", func(t *testing.T) {
		t.Parallel()
		e.checkUndecided(t, "an unlisted user", newRegistration(t, "flooded").submit(t, as("unlisted")))
		e.awaitApproved(t, newRegistration(t, "flooded").submit(t, as("listed")))
	})
	t.Run("one that a person approved does", func(t *testing.T) {
		t.Parallel()
		e.approve(t, newRegistration(t, "taken").submit(t, as("unlisted")))
		late := newRegistration(t, "taken").submit(t, as("listed"))
		e.awaitEvent(t, "RegistrationRivalry", "registers cluster taken")
		e.checkUndecided(t, "a name that is taken", late)
	})
	t.Run("an agent's renewals do not stop it after its loss", func(t *testing.T) {
		t.Parallel()
		e.cluster(t, "lost")
		e.awaitAgent(t, "lost", "a1")
		e.forget(t, "lost")
		e.awaitApproved(t, newRegistration(t, "lost").submit(t, e.agent(t, "lost")))
		e.awaitApproved(t, newRegistration(t, "lost").submit(t, as("listed")))
	})
	for name, resolve := range map[string]func(*testing.T, *certificatesv1.CertificateSigningRequest){
		"denied": func(t *testing.T, object *certificatesv1.CertificateSigningRequest) {
			t.Helper()
			e.decide(t, object, certificatesv1.CertificateDenied)
		},
		"deleted": func(t *testing.T, object *certificatesv1.CertificateSigningRequest) {
			t.Helper()
			if err := e.admin.Delete(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run("a request that waits is approved when the other is "+name, func(t *testing.T) {
			t.Parallel()
			// Those that wait for a living agent conflict with each other as well.
			e.bare(t, name)
			e.awaitAccepted(t, name)
			e.patchAvailable(t, name, metav1.ConditionTrue)
			first := newRegistration(t, name).submit(t, as("listed"))
			second := newRegistration(t, name).submit(t, as("listed"))
			e.awaitEvent(t, "RegistrationRivalry", "the agent of cluster "+name+" is running")
			e.patchAvailable(t, name, metav1.ConditionUnknown)
			third := newRegistration(t, name).submit(t, as("listed")) // By its event the others were looked at.
			e.awaitEvent(t, "RegistrationRivalry", " registers cluster "+name)
			e.checkUndecided(t, "the first of three", first)
			resolve(t, second)
			resolve(t, third)
			e.awaitApproved(t, first)
		})
	}
}

// TestApprovalComesWithItsDriver: a hub without the csr driver approves nothing.
func TestApprovalComesWithItsDriver(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	config := granting(drivertest.NewOutside())
	config.Drivers = config.Drivers[1:]
	stop := e.start(t, config, nil)
	e.cluster(t, "c1", acceptedFromTheStart)
	e.awaitAgent(t, "c1", "a1")
	renewal := newRegistration(t, "c1").submit(t, e.agent(t, "c1"))
	e.bare(t, "marker", acceptedFromTheStart, registeredAs("marker"))
	e.awaitGranted(t, "marker")
	e.checkUndecided(t, "a renewal", renewal)
	stop()
	e.start(t, defaults(), nil)
	e.awaitApproved(t, renewal)
}
