package token_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/drivertest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/token"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

// longest is the longest life of a token that the test's hub issues.
const longest = 2 * time.Hour

var hub *controlplane.ControlPlane

func TestMain(m *testing.M) {
	controlplane.Main(m, &hub, controlplane.WithAPIServerArgs("--service-account-max-token-expiration="+longest.String()))
}

// place is one cluster's namespace on the hub, with the part of its add-on
// manager and with the client of its agent.
type place struct {
	cluster string
	admin   client.Client
	agent   client.WithWatch
	// wire, if set, answers the agent's requests in the hub's place, or returns nil.
	wire atomic.Pointer[func(*http.Request) (*http.Response, error)]
	next http.RoundTripper
}

func newPlace(t *testing.T, cluster string) *place {
	t.Helper()
	return newPlaceAt(t, hub, cluster)
}

func newPlaceAt(t *testing.T, hub *controlplane.ControlPlane, cluster string) *place {
	t.Helper()
	p := &place{cluster: cluster, admin: hub.Client(t)}
	config := agentConfig(t, hub, cluster)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		p.next = next
		return p
	})
	var err error
	if p.agent, err = client.NewWithWatch(config, client.Options{Scheme: scheme.New()}); err != nil {
		t.Fatal(err)
	}
	p.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster}})
	return p
}

// agentConfig is the connection of a cluster's agent.
func agentConfig(t *testing.T, hub *controlplane.ControlPlane, cluster string) *rest.Config {
	t.Helper()
	return hub.ConfigFor(t, names.AgentUser(cluster, "agent1"), names.ClusterGroup(cluster), names.GroupManagedClusters)
}

// RoundTrip implements http.RoundTripper.
func (p *place) RoundTrip(r *http.Request) (*http.Response, error) {
	if wire := p.wire.Load(); wire != nil && strings.HasSuffix(r.URL.Path, "/token") {
		if response, err := (*wire)(r); response != nil || err != nil {
			return response, err
		}
	}
	return p.next.RoundTrip(r)
}

func (p *place) answer(wire func(*http.Request) (*http.Response, error)) { p.wire.Store(&wire) }

func (p *place) create(t *testing.T, o client.Object) {
	t.Helper()
	if err := p.admin.Create(t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// serviceAccount makes a ServiceAccount and returns it as the condition tells of it.
func (p *place) serviceAccount(t *testing.T, name string) names.TokenServiceAccount {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.cluster, Name: name}}
	p.create(t, account)
	if err := p.admin.Get(t.Context(), client.ObjectKeyFromObject(account), account); err != nil {
		t.Fatal(err)
	}
	return names.TokenServiceAccount{Namespace: p.cluster, Name: name, UID: string(account.UID)}
}

// permit lets the cluster's agent request tokens of a ServiceAccount, as the
// hub's add-on manager does.
func (p *place) permit(t *testing.T, addOn, account string) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: p.cluster, Name: names.AddOnTokenRole(addOn)}
	p.create(t, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{account}, Verbs: []string{"create"},
	}}})
	p.create(t, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}, Subjects: []rbacv1.Subject{
		{APIGroup: rbacv1.GroupName, Kind: "Group", Name: names.ClusterGroup(p.cluster)},
	}})
	// The API server's authorizer learns of it a moment later.
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return p.mayRequest(ctx, account)
	})
	if err != nil {
		t.Fatalf("the agent may not request tokens of %s: %v", account, err)
	}
}

// mayRequest reports whether the agent gets a token.
func (p *place) mayRequest(ctx context.Context, account string) (bool, error) {
	err := p.agent.SubResource("token").Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.cluster, Name: account}}, &authenticationv1.TokenRequest{})
	if apierrors.IsForbidden(err) {
		return false, nil
	}
	return err == nil, err
}

// ready makes all that the hub does for an add-on, and says so in its status.
func (p *place) ready(t *testing.T, addOn *addonv1beta1.ManagedClusterAddOn) {
	t.Helper()
	_, name, _ := names.ParseServiceAccountUser(addOn.Status.Registrations[0].KubeClient.Subject.User)
	account := p.serviceAccount(t, name)
	p.permit(t, addOn.Name, name)
	report(addOn, account.Message())
}

// tell sets the condition on an add-on in memory.
func report(addOn *addonv1beta1.ManagedClusterAddOn, message string) {
	apimeta.SetStatusCondition(&addOn.Status.Conditions, metav1.Condition{
		Type: names.ConditionTokenInfrastructureReady, Status: metav1.ConditionTrue, Reason: names.ReasonTokenInfrastructureReady, Message: message,
		LastTransitionTime: metav1.NewTime(clock.RealClock{}.Now().Add(-time.Hour)),
	})
}

func TestConformance(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	places := map[string]*place{}
	at := func(t *testing.T, cluster string) *place {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if places[cluster] == nil {
			places[cluster] = newPlace(t, cluster)
		}
		return places[cluster]
	}
	drivertest.RunAddOn(t, drivertest.AddOnSuite{
		New: func(addOn *addonv1beta1.ManagedClusterAddOn) driver.AddOn {
			return token.NewAddOn(token.Config{Cluster: addOn.Namespace, AddOn: addOn, Registration: addOn.Status.Registrations[0], Clock: clock.RealClock{}})
		},
		Registration: addonv1beta1.RegistrationConfig{Type: addonv1beta1.KubeClient},
		Prefix:       "token",
		Hub: func(t *testing.T, cluster string) *rest.Config {
			t.Helper()
			at(t, cluster)
			return agentConfig(t, hub, cluster)
		},
		Grant: func(t *testing.T, addOn *addonv1beta1.ManagedClusterAddOn) {
			t.Helper()
			at(t, addOn.Namespace).ready(t, addOn)
		},
		Refuse: func(t *testing.T, addOn *addonv1beta1.ManagedClusterAddOn) {
			t.Helper()
			account := at(t, addOn.Namespace).serviceAccount(t, names.AddOnServiceAccount(addOn.Namespace, addOn.Name))
			report(addOn, account.Message())
		},
	})
}

// agentOf is what the agent's reconciler does with one add-on, without the rest.
type agentOf struct {
	*place
	addOn *addonv1beta1.ManagedClusterAddOn
}

// newAgent returns an add-on whose hub side is done.
func newAgent(t *testing.T, cluster string) *agentOf {
	t.Helper()
	return newAgentAt(t, hub, cluster)
}

func newAgentAt(t *testing.T, hub *controlplane.ControlPlane, cluster string) *agentOf {
	t.Helper()
	a := &agentOf{place: newPlaceAt(t, hub, cluster), addOn: &addonv1beta1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "a"},
		Status:     addonv1beta1.ManagedClusterAddOnStatus{Registrations: []addonv1beta1.RegistrationConfig{{Type: addonv1beta1.KubeClient}}},
	}}
	a.addOn.Status.Registrations[0] = a.driver(0).Declare()
	a.ready(t, a.addOn)
	return a
}

func (a *agentOf) driver(seconds int64) *token.AddOn {
	return token.NewAddOn(token.Config{
		Cluster: a.cluster, AddOn: a.addOn, Registration: a.addOn.Status.Registrations[0], ExpirationSeconds: seconds, Clock: clock.RealClock{},
	})
}

// obtain obtains a token that must be issued.
func (a *agentOf) obtain(t *testing.T, seconds int64) *driver.Issued {
	t.Helper()
	step, err := a.driver(seconds).Obtain(t.Context(), a.agent, nil)
	if err != nil || step.Issued == nil {
		t.Fatalf("no token: %+v, %v", step.Waiting, err)
	}
	return step.Issued
}

// whoAmI asks a hub who holds a token.
func whoAmI(t *testing.T, hub *controlplane.ControlPlane, token string) (authenticationv1.UserInfo, error) {
	t.Helper()
	review := &authenticationv1.SelfSubjectReview{}
	err := hub.ClientFor(t, hub.ConfigForToken(token)).Create(t.Context(), review)
	return review.Status.UserInfo, err
}

func TestTheTokenIsTheDeclaredSubject(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "subject")
	issued := a.obtain(t, 600)
	if got := issued.Validity.Lifetime(); got != 10*time.Minute {
		t.Errorf("it is good for %v", got)
	}
	got, err := whoAmI(t, hub, string(issued.Data[names.KeyToken]))
	if err != nil || got.Username != a.addOn.Status.Registrations[0].KubeClient.Subject.User || got.UID != string(issued.Data[names.KeyServiceAccountUID]) {
		t.Errorf("the hub takes it for %+v, %v", got, err)
	}
}

// The hub issues two hours where a year is asked for: the two hours count.
func TestAShorterLifeThanAsked(t *testing.T) {
	t.Parallel()
	issued := newAgent(t, "shorter").obtain(t, 0)
	if got := issued.Validity.Lifetime(); got != longest {
		t.Errorf("it is good for %v, the hub issues %v at most", got, longest)
	}
	if want := issued.Validity.NotAfter.Format(time.RFC3339); string(issued.Data[names.KeyExpiration]) != want {
		t.Errorf("the Secret says %s, want %s", issued.Data[names.KeyExpiration], want)
	}
}

func TestTooShortALife(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "minute")
	_, err := a.driver(60).Obtain(t.Context(), a.agent, nil)
	a.failed(t, err, token.ReasonInvalid)
}

func (a *agentOf) failed(t *testing.T, err error, reason string) {
	t.Helper()
	var failure *driver.RequestError
	if !errors.As(err, &failure) || failure.Reason != reason {
		t.Fatalf("got %v, want %s", err, reason)
	}
}

func TestARecreatedServiceAccount(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "recreated")
	first := a.obtain(t, 600)
	name := string(first.Data[names.KeyServiceAccountName])
	if err := a.admin.Delete(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: a.cluster, Name: name}}); err != nil {
		t.Fatal(err)
	}
	_, err := a.driver(600).Obtain(t.Context(), a.agent, nil)
	a.failed(t, err, token.ReasonNotFound)
	anew := a.serviceAccount(t, name)
	// The condition still names the old one: no token of the new one is stored,
	// for it would be thrown away at the next look.
	step, err := a.driver(600).Obtain(t.Context(), a.agent, nil)
	if err != nil || step.Issued != nil || step.Waiting.Reason != token.ReasonRecreated {
		t.Fatalf("got %+v, %v", step, err)
	}
	report(a.addOn, anew.Message())
	if _, err := a.driver(600).Inspect(first.Data); !errors.Is(err, credential.ErrWrongIdentity) {
		t.Errorf("the old token: got %v, want it to be of the wrong identity", err)
	}
	second := a.obtain(t, 600)
	if string(second.Data[names.KeyServiceAccountUID]) != anew.UID {
		t.Errorf("the new token has UID %s, want %s", second.Data[names.KeyServiceAccountUID], anew.UID)
	}
}

// Against an upstream hub the condition names another ServiceAccount than the
// subject; the agent follows, and only then gets its token.
func TestAHubWithUpstreamsName(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "upstream")
	upstream := a.serviceAccount(t, names.AddOnServiceAccountUpstream("a"))
	report(a.addOn, upstream.Message())
	step, err := a.driver(600).Obtain(t.Context(), a.agent, nil)
	a.failed(t, err, token.ReasonForbidden)
	if step.Issued != nil || !strings.Contains(err.Error(), names.AddOnTokenRole("a")) {
		t.Errorf("the refusal says %v", err)
	}
	if err := a.admin.Delete(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: a.cluster, Name: names.AddOnTokenRole("a")}}); err != nil {
		t.Fatal(err)
	}
	a.addOn.Status.Registrations[0] = a.driver(600).Declare()
	a.permit(t, "a", upstream.Name)
	issued := a.obtain(t, 600)
	got, err := whoAmI(t, hub, string(issued.Data[names.KeyToken]))
	if err != nil || got.Username != "system:serviceaccount:upstream:a-agent" || got.Username != a.addOn.Status.Registrations[0].KubeClient.Subject.User {
		t.Errorf("the hub takes it for %+v, %v", got, err)
	}
}

// What a forged status names is not requested even where the right is there.
func TestAForgedCondition(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "forged")
	victim := a.serviceAccount(t, "victim")
	a.permit(t, "victim", victim.Name)
	report(a.addOn, victim.Message())
	a.answer(func(r *http.Request) (*http.Response, error) {
		t.Errorf("it sent %s", r.URL.Path)
		return nil, nil //nolint:nilnil // leave it to the hub
	})
	step, err := a.driver(600).Obtain(t.Context(), a.agent, nil)
	if err != nil || step.Waiting.Reason != token.ReasonRefused || !step.Failing {
		t.Errorf("got %+v, %v", step, err)
	}
}

// A busy hub asks to come again. The client does so by itself for a while, and
// then it is the driver's wait.
func TestAThrottlingHub(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "throttled")
	var asked atomic.Int32
	throttle := func(r *http.Request) (*http.Response, error) {
		asked.Add(1)
		return &http.Response{
			Status: "429 Too Many Requests", StatusCode: http.StatusTooManyRequests, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{"Retry-After": []string{"0"}, "Content-Type": []string{"text/plain"}},
			Body:   io.NopCloser(strings.NewReader("slow down")), Request: r,
		}, nil
	}
	a.answer(throttle)
	step, err := a.driver(600).Obtain(t.Context(), a.agent, nil)
	if err != nil || step.Waiting.Reason != token.ReasonThrottled || step.After < time.Second || !step.Failing {
		t.Errorf("got %+v, %v", step, err)
	}
	if got := asked.Load(); got > 20 {
		t.Errorf("it asked %d times", got)
	}
	a.wire.Store(nil)
	a.obtain(t, 600)
}

func TestASlowHub(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "slow")
	a.answer(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, context.Cause(r.Context())
	})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := a.driver(600).Obtain(ctx, a.agent, nil)
	a.failed(t, err, token.ReasonTimeout)
	a.wire.Store(nil)
	a.obtain(t, 600)
}

// A token outlives the restart of the hub that issued it, and the next one is
// to be had as soon as the hub is back.
func TestAHubThatRestarts(t *testing.T) {
	t.Parallel()
	hub := controlplane.Start(t)
	a := newAgentAt(t, hub.ControlPlane, "restarts")
	first := a.obtain(t, 600)
	hub.StopAPIServer(t)
	_, err := a.driver(600).Obtain(t.Context(), a.agent, nil)
	a.failed(t, err, token.ReasonUnavailable)
	if _, err := a.driver(600).Inspect(first.Data); err != nil {
		t.Errorf("with the hub down the token is judged as %v", err)
	}
	hub.StartAPIServer(t)
	if _, err := whoAmI(t, hub.ControlPlane, string(first.Data[names.KeyToken])); err != nil {
		t.Errorf("after its restart the hub does not take the token: %v", err)
	}
	a.obtain(t, 600)
}
