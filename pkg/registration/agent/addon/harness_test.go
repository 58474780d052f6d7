package addon_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent/addon"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/csr"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/token"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/drivers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controllers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

// patience is far above what anything takes: the machine may be busy.
const patience = await.Patience

// plane is hub and managed cluster of every test at once: what an agent may do
// here and there are the rights of two users. Each test has its own cluster.
var plane *controlplane.ControlPlane

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	controlplane.Main(m, &plane)
	if err := controlplane.Leaks(); err != nil {
		panic(err)
	}
}

func now() time.Time { return clock.RealClock{}.Now() }

func pause(d time.Duration) { clock.RealClock{}.Sleep(d) }

func eventually(t *testing.T, what string, done func() error) {
	t.Helper()
	await.Success(t, patience, what, func(context.Context) error { return done() })
}

func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	installation.Create(t, c, objects...)
}

func install(t *testing.T, c client.Client, objs []*unstructured.Unstructured, err error, kinds ...string) {
	t.Helper()
	installation.Some(t, c, objs, err, kinds...)
}

// fleet is one managed cluster on the hub, with an agent's namespace on it.
type fleet struct {
	plane     *controlplane.ControlPlane
	cluster   string
	namespace string
	admin     client.Client
	config    addon.Config
	// secondsOfTokens is what the token driver asks for.
	secondsOfTokens int64
	// logger is the agent's and its connections'; by default there is one in
	// verbose tests only, of the agent alone.
	logger logr.Logger

	mu     sync.Mutex
	counts map[string]int
	// running are the agents that were started and not stopped.
	running []*process
	// refuse answers a request of the agent in the API server's place.
	refuse func(*http.Request) *http.Response
	// fail makes a request fail before it arrives.
	fail func(path string) bool
}

// names of what a test calls its cluster by.
var serial struct {
	sync.Mutex
	next int
}

func newFleet(t *testing.T, auth driver.AuthType) *fleet {
	t.Helper()
	return newFleetOn(t, plane, auth)
}

func newFleetOn(t *testing.T, plane *controlplane.ControlPlane, auth driver.AuthType) *fleet {
	t.Helper()
	serial.Lock()
	serial.next++
	f := &fleet{plane: plane, cluster: fmt.Sprintf("c%d", serial.next), secondsOfTokens: 3600, counts: map[string]int{}}
	serial.Unlock()
	f.namespace = "agent-" + f.cluster
	f.admin = f.plane.Client(t)
	f.installHub(t)
	values := manifests.Klusterlet{Name: f.cluster, Namespace: f.namespace, DockerConfig: []byte("{}"), AddOnManagement: true, AddOnNamespace: true}
	base, err := manifests.RenderKlusterletBase(values)
	install(t, f.admin, base, err, "Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
	create(t, f.admin, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.installed()}})
	hub, err := kubeconfig.ParseHub(f.plane.KubeconfigFor(t, f.user(), f.groups()...))
	if err != nil {
		t.Fatal(err)
	}
	f.config = addon.Config{
		Cluster: f.cluster, Namespace: f.namespace, Hub: hub, Clock: clock.RealClock{},
		Reserved: []string{names.BootstrapHubKubeconfigSecret, names.HubKubeconfigSecret},
	}
	f.use(auth)
	return f
}

// use makes agents that are started from now on use a driver for kubeClient
// registrations.
func (f *fleet) use(kubeClient driver.AuthType) {
	f.config.NewDriver = func(addOn *addonv1beta1.ManagedClusterAddOn, registration addonv1beta1.RegistrationConfig) driver.AddOn {
		if kubeClient == driver.Token && registration.Type == addonv1beta1.KubeClient {
			return token.NewAddOn(token.Config{Cluster: f.cluster, AddOn: addOn, Registration: registration, ExpirationSeconds: f.secondsOfTokens, Clock: clock.RealClock{}})
		}
		return csr.NewAddOn(csr.AddOnConfig{Cluster: f.cluster, AddOn: addOn, Registration: registration, Clock: clock.RealClock{}})
	}
}

// installed is the install namespace of this test's add-ons.
func (f *fleet) installed() string { return "addons-" + f.cluster }

func (f *fleet) user() string { return names.AgentUser(f.cluster, "agent") }

func (f *fleet) groups() []string {
	return []string{names.ClusterGroup(f.cluster), names.GroupManagedClusters, "system:authenticated"}
}

// installHub makes what the hub has for an accepted cluster.
func (f *fleet) installHub(t *testing.T) {
	t.Helper()
	values := manifests.Hub{Name: names.ClusterManagerName, Namespace: names.HubNamespace, DockerConfig: []byte("{}"), IdentityAnnotations: drivers.All().Annotations()}
	crds, err := manifests.RenderHubCRDs(values)
	crds = slices.DeleteFunc(crds, func(o *unstructured.Unstructured) bool {
		return o.GetName() != "managedclusteraddons.addon.open-cluster-management.io"
	})
	for _, o := range crds {
		// The webhook between the versions is no part of these tests.
		unstructured.RemoveNestedField(o.Object, "spec", "conversion")
	}
	install(t, f.admin, crds, err, installation.CRD)
	admission, err := manifests.RenderHubAdmission(values)
	install(t, f.admin, admission, err, "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
	subjects := []rbacv1.Subject{{Kind: "Group", Name: names.ClusterGroup(f.cluster), APIGroup: rbacv1.GroupName}}
	cluster := names.ManagedClusterClusterRole(f.cluster)
	create(t, f.admin,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.cluster}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: cluster}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{names.GroupCertificates}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create", "get", "list", "watch"}},
			{APIGroups: []string{names.GroupCluster}, Resources: []string{"managedclusters/status"}, ResourceNames: []string{f.cluster}, Verbs: []string{"patch", "update"}},
		}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: cluster}, Subjects: subjects, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: cluster, APIGroup: rbacv1.GroupName}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: names.ClusterRoleRegistration}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "list", "watch", "update"}},
			{APIGroups: []string{addonv1beta1.GroupVersion.Group}, Resources: []string{"managedclusteraddons"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{addonv1beta1.GroupVersion.Group}, Resources: []string{"managedclusteraddons/status"}, Verbs: []string{"patch", "update"}},
			{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.cluster, Name: names.RegistrationRoleBinding(f.cluster)}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: names.ClusterRoleRegistration, APIGroup: rbacv1.GroupName},
		},
	)
}

// process is one run of an agent's add-on registration.
type process struct {
	registry *prometheus.Registry
	stop     func()
	// observed is nil for one without a controller.
	observed *addon.Observed
}

// counted counts an agent's writes, events aside, and lets a test refuse some.
type counted struct {
	fleet *fleet
	dead  func(*http.Request) bool
	next  http.RoundTripper
}

func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.dead != nil && c.dead(r) {
		return nil, fmt.Errorf("the process is dead: %w", context.Canceled)
	}
	c.fleet.mu.Lock()
	refuse, fail := c.fleet.refuse, c.fleet.fail
	c.fleet.mu.Unlock()
	if fail != nil && fail(r.URL.Path) {
		return nil, errors.New("the hub is out of reach")
	}
	if refuse != nil {
		if response := refuse(r); response != nil {
			return response, nil
		}
	}
	response, err := c.next.RoundTrip(r)
	// What an API server refused, because two wrote at once or it had not seen
	// a Role yet, was no write.
	if err == nil && r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/events") && response.StatusCode < http.StatusBadRequest {
		c.fleet.mu.Lock()
		defer c.fleet.mu.Unlock()
		path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
		c.fleet.counts[r.Method+" "+kindOf(path)]++
	}
	return response, err
}

// kindOf is the resource and subresource of an API path.
func kindOf(path []string) string {
	i := slices.Index(path, "namespaces")
	if i < 0 || len(path) <= i+2 {
		return path[len(path)-1]
	}
	kind := path[i+2]
	if len(path) > i+4 {
		kind += "/" + path[i+4]
	}
	return kind
}

// writes returns what was written since the last call.
func (f *fleet) writes() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	counts := f.counts
	f.counts = map[string]int{}
	return counts
}

func (f *fleet) setRefuse(refuse func(*http.Request) *http.Response) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse = refuse
}

func (f *fleet) setFail(fail func(path string) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = fail
}

func (f *fleet) start(t *testing.T) *process {
	t.Helper()
	return f.startWith(t, nil)
}

// startWith runs the agent, with the rights of our manifests on the managed
// cluster and those of its cluster on the hub, until stop or the end of the
// test. Requests that dead takes are never sent.
func (f *fleet) startWith(t *testing.T, dead func(*http.Request) bool) *process {
	t.Helper()
	var observed *addon.Observed
	p := f.run(t, dead, func(_ context.Context, mgr ctrl.Manager, config addon.Config) (err error) {
		observed, err = addon.SetupObserved(mgr, config)
		return err
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	p.observed = observed
	f.running = append(f.running, p)
	return p
}

// reconciler runs the agent without the controller that would call it.
func (f *fleet) reconciler(t *testing.T) *addon.Reconciler {
	t.Helper()
	var r *addon.Reconciler
	f.run(t, nil, func(ctx context.Context, mgr ctrl.Manager, config addon.Config) (err error) {
		r, err = addon.NewReconciler(ctx, mgr, config)
		return err
	})
	return r
}

func (f *fleet) run(t *testing.T, dead func(*http.Request) bool, setup func(context.Context, ctrl.Manager, addon.Config) error) *process {
	t.Helper()
	logger := f.logger
	if logger.IsZero() && testing.Verbose() {
		logger = textlogger.NewLogger(textlogger.NewConfig())
	}
	wrap := func(c *rest.Config) *rest.Config {
		c.QPS = -1
		c.Wrap(func(next http.RoundTripper) http.RoundTripper { return &counted{fleet: f, dead: dead, next: next} })
		if !f.logger.IsZero() { // As client-go does with -v=6 and more.
			c.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return transport.NewDebuggingRoundTripper(next, transport.DebugByContext)
			})
		}
		return c
	}
	options := controllers.Options(manager.Options{Logger: logger})
	account := names.ServiceAccountUser(f.namespace, names.RegistrationAgentServiceAccount(f.cluster))
	outer, err := ctrl.NewManager(wrap(f.plane.ConfigFor(t, account, "system:serviceaccounts", "system:authenticated")), options)
	if err != nil {
		t.Fatal(err)
	}
	hub := wrap(f.plane.ConfigFor(t, f.user(), f.groups()...))
	inner, err := ctrl.NewManager(hub, options)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{registry: prometheus.NewRegistry()}
	run := f.config
	run.Managed, run.Live = outer, f.plane.ClientFor(t, hub)
	if run.Metrics, err = addon.NewMetrics(p.registry); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := setup(ctx, inner, run); err != nil {
		cancel()
		t.Fatal(err)
	}
	var running sync.WaitGroup
	for _, mgr := range []manager.Manager{outer, inner} {
		running.Go(func() {
			if err := mgr.Start(ctx); err != nil {
				t.Errorf("the agent ended: %v", err)
			}
		})
	}
	p.stop = func() {
		f.mu.Lock()
		f.running = slices.DeleteFunc(f.running, func(other *process) bool { return other == p })
		f.mu.Unlock()
		cancel()
		running.Wait()
	}
	t.Cleanup(p.stop)
	return p
}

// register makes an add-on as its hub side does: the registrations have neither
// driver nor subject.
func (f *fleet) register(t *testing.T, name string, registrations ...addonv1beta1.RegistrationConfig) {
	t.Helper()
	if registrations == nil {
		registrations = []addonv1beta1.RegistrationConfig{kubeClient()}
	}
	addOn := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: f.cluster, Name: name}}
	create(t, f.admin, addOn)
	f.status(t, name, func(s *addonv1beta1.ManagedClusterAddOnStatus) {
		s.Namespace, s.Registrations = f.installed(), registrations
	})
}

func kubeClient() addonv1beta1.RegistrationConfig {
	return addonv1beta1.RegistrationConfig{Type: addonv1beta1.KubeClient, KubeClient: &addonv1beta1.KubeClientConfig{}}
}

func customSigner(signer string) addonv1beta1.RegistrationConfig {
	return addonv1beta1.RegistrationConfig{Type: addonv1beta1.CustomSigner, CustomSigner: &addonv1beta1.CustomSignerConfig{SignerName: signer}}
}

// status changes an add-on's status as the hub.
func (f *fleet) status(t *testing.T, name string, change func(*addonv1beta1.ManagedClusterAddOnStatus)) {
	t.Helper()
	eventually(t, "the status of "+name, func() error {
		addOn, err := f.get(t, name)
		if err != nil {
			return err
		}
		change(&addOn.Status)
		return f.admin.Status().Update(t.Context(), addOn)
	})
}

// annotate sets an annotation of the add-on one, or removes it if value is empty.
func (f *fleet) annotate(t *testing.T, key, value string) {
	t.Helper()
	f.change(t, func(addOn *addonv1beta1.ManagedClusterAddOn) {
		if addOn.Annotations == nil {
			addOn.Annotations = map[string]string{}
		}
		addOn.Annotations[key] = value
		if value == "" {
			delete(addOn.Annotations, key)
		}
	})
}

// finalize sets the finalizers of the add-on one.
func (f *fleet) finalize(t *testing.T, finalizers ...string) {
	t.Helper()
	f.change(t, func(addOn *addonv1beta1.ManagedClusterAddOn) { addOn.Finalizers = finalizers })
}

// change changes the add-on one, whose status the agent may be writing.
func (f *fleet) change(t *testing.T, change func(*addonv1beta1.ManagedClusterAddOn)) {
	t.Helper()
	const name = "one"
	eventually(t, "a change of "+name, func() error {
		addOn, err := f.get(t, name)
		if err != nil {
			return err
		}
		change(addOn)
		return f.admin.Update(t.Context(), addOn)
	})
}

func (f *fleet) get(t *testing.T, name string) (*addonv1beta1.ManagedClusterAddOn, error) {
	t.Helper()
	addOn := &addonv1beta1.ManagedClusterAddOn{}
	return addOn, f.admin.Get(t.Context(), client.ObjectKey{Namespace: f.cluster, Name: name}, addOn)
}

// secret returns a Secret of an add-on, nil if there is none.
func (f *fleet) secret(t *testing.T, name string) *corev1.Secret {
	t.Helper()
	return f.secretIn(t, f.installed(), name)
}

func (f *fleet) secretIn(t *testing.T, namespace, name string) *corev1.Secret {
	t.Helper()
	var secret corev1.Secret
	err := f.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &secret)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return &secret
}

// condition waits until an add-on has a condition that is as wanted.
func (f *fleet) condition(t *testing.T, name, kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	t.Helper()
	var found metav1.Condition
	eventually(t, fmt.Sprintf("%s of %s to be %s/%s", kind, name, status, reason), func() error {
		addOn, err := f.get(t, name)
		if err != nil {
			return err
		}
		c := apimeta.FindStatusCondition(addOn.Status.Conditions, kind)
		if c == nil || c.Status != status || c.Reason != reason {
			return fmt.Errorf("conditions %+v", addOn.Status.Conditions)
		}
		found = *c
		return nil
	})
	return found
}

func (f *fleet) noCondition(t *testing.T, kind string) {
	t.Helper()
	const name = "one"
	eventually(t, "no "+kind, func() error {
		addOn, err := f.get(t, name)
		if err == nil && apimeta.FindStatusCondition(addOn.Status.Conditions, kind) != nil {
			err = fmt.Errorf("conditions %+v", addOn.Status.Conditions)
		}
		return err
	})
}

// subject waits until the kubeClient registration has a subject, and returns it.
func (f *fleet) subject(t *testing.T, name string, auth driver.AuthType) addonv1beta1.BaseSubject {
	t.Helper()
	var subject addonv1beta1.BaseSubject
	eventually(t, "the subject of "+name, func() error {
		addOn, err := f.get(t, name)
		if err != nil {
			return err
		}
		for _, r := range addOn.Status.Registrations {
			if r.Type == addonv1beta1.KubeClient && r.KubeClient != nil && r.KubeClient.Driver == string(auth) && r.KubeClient.Subject.User != "" {
				_, _, account := names.ParseServiceAccountUser(r.KubeClient.Subject.User)
				if subject = r.KubeClient.Subject.BaseSubject; account == (auth == driver.Token) {
					return nil
				}
			}
		}
		return fmt.Errorf("registrations %+v", addOn.Status.Registrations)
	})
	return subject
}

// serve makes the token infrastructure of an add-on as the hub's add-on manager
// does, and returns the ServiceAccount's UID.
func (f *fleet) serve(t *testing.T, name, account string) string {
	t.Helper()
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.cluster, Name: account}}
	create(t, f.admin, sa)
	if err := f.admin.Get(t.Context(), client.ObjectKeyFromObject(sa), sa); err != nil {
		t.Fatal(err)
	}
	role := names.AddOnTokenRole(name)
	create(t, f.admin,
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: f.cluster, Name: role}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: names.AddOnServiceAccounts(f.cluster, name), Verbs: []string{"create"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.cluster, Name: role},
			Subjects:   []rbacv1.Subject{{Kind: "Group", Name: names.ClusterGroup(f.cluster), APIGroup: rbacv1.GroupName}},
			RoleRef:    rbacv1.RoleRef{Kind: "Role", Name: role, APIGroup: rbacv1.GroupName},
		},
	)
	ready := names.TokenServiceAccount{Namespace: f.cluster, Name: account, UID: string(sa.UID)}
	f.status(t, name, func(s *addonv1beta1.ManagedClusterAddOnStatus) {
		apimeta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: names.ConditionTokenInfrastructureReady, Status: metav1.ConditionTrue, Reason: names.ReasonTokenInfrastructureReady, Message: ready.Message(),
		})
	})
	return string(sa.UID)
}

// withToken registers the add-on one by token and waits until it has one.
func (f *fleet) withToken(t *testing.T) *corev1.Secret {
	t.Helper()
	const name = "one"
	f.register(t, name)
	f.subject(t, name, driver.Token)
	f.serve(t, name, names.AddOnServiceAccount(f.cluster, name))
	f.condition(t, name, names.ConditionTokenRefreshed, metav1.ConditionTrue, names.ReasonAddOnTokenRefreshed)
	f.condition(t, name, addonv1beta1.ManagedClusterAddOnConditionAvailable, metav1.ConditionUnknown, addonv1beta1.AddonAvailableReasonLeaseLeaseNotFound)
	return f.secret(t, names.AddOnHubKubeconfigSecret(name))
}

// requests are the CSRs of an add-on.
func (f *fleet) requests(t *testing.T, name string) []certificatesv1.CertificateSigningRequest {
	t.Helper()
	var list certificatesv1.CertificateSigningRequestList
	if err := f.admin.List(t.Context(), &list, client.MatchingLabels{names.LabelClusterName: f.cluster, names.LabelAddOnName: name}); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// approve approves the undecided CSRs of an add-on, of which there have to be
// some.
func (f *fleet) approve(t *testing.T, name string) {
	t.Helper()
	clients := kubernetes.NewForConfigOrDie(f.plane.Config(t))
	eventually(t, "a request to approve", func() error {
		approved := 0
		for _, c := range f.requests(t, name) {
			if len(c.Status.Conditions) > 0 {
				continue
			}
			c.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"}}
			if _, err := clients.CertificatesV1().CertificateSigningRequests().UpdateApproval(t.Context(), c.Name, &c, metav1.UpdateOptions{}); err != nil {
				return err
			}
			approved++
		}
		if approved == 0 {
			return fmt.Errorf("no undecided request of %s", name)
		}
		return nil
	})
}

// forge makes a token that says what it is given; nobody but a hub looks at the
// signature.
func forge(t *testing.T, cluster, account, uid string, issued, expires time.Time) []byte {
	t.Helper()
	payload, err := json.Marshal(map[string]any{
		"iat": issued.Unix(), "nbf": issued.Unix(), "exp": expires.Unix(),
		"kubernetes.io": map[string]any{"namespace": cluster, "serviceaccount": map[string]any{"name": account, "uid": uid}},
	})
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	return []byte(encode([]byte(`{"alg":"RS256"}`)) + "." + encode(payload) + "." + encode([]byte("signature")))
}
