package tokenauthorizer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/keytrust"
	testissuer "github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/server"
)

// mints stands for the API of a hub that makes tokens, and counts them by the
// ServiceAccount that they are for.
type mints struct {
	mu     sync.Mutex
	counts map[string]int
	// before, if set, is called before a token is made.
	before func(account string)
}

func (m *mints) RoundTrip(r *http.Request) (*http.Response, error) {
	parts := strings.Split(r.URL.Path, "/") // /api/v1/namespaces/NS/serviceaccounts/NAME/token
	if len(parts) != 8 {
		return nil, errors.New("this hub only makes tokens")
	}
	account := parts[6]
	m.mu.Lock()
	before := m.before
	m.mu.Unlock()
	if before != nil {
		before(account)
	}
	m.mu.Lock()
	if m.counts == nil {
		m.counts = map[string]int{}
	}
	m.counts[account]++
	m.mu.Unlock()
	data, err := json.Marshal(authenticationv1.TokenRequest{
		TypeMeta: metav1.TypeMeta{Kind: "TokenRequest", APIVersion: authenticationv1.SchemeGroupVersion.String()},
		Status: authenticationv1.TokenRequestStatus{
			Token: "for-" + account, ExpirationTimestamp: metav1.NewTime(clock.RealClock{}.Now().Add(time.Hour)),
		},
	})
	return &http.Response{
		StatusCode: http.StatusCreated, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(bytes.NewReader(data)),
	}, err
}

func (m *mints) count(account string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts[account]
}

// block has the next token wait; entered is closed when it does.
func (m *mints) block() (entered <-chan struct{}, release func()) {
	waiting, leave := make(chan struct{}), make(chan struct{})
	var once sync.Once
	m.mu.Lock()
	defer m.mu.Unlock()
	m.before = func(string) {
		once.Do(func() { close(waiting) })
		<-leave
	}
	return waiting, sync.OnceFunc(func() { close(leave) })
}

// inFile and onHub are where configurations come from.
var (
	inFile = tokenauthorizer.Source{File: "clusters.yaml"}
	onHub  = tokenauthorizer.Source{FromHub: true}
)

// parts are those of a role that decide, with a hub that counts.
type parts struct {
	tokenauthorizer.Parts

	mints   *mints
	metrics *prometheus.Registry
}

func newParts(t *testing.T, source tokenauthorizer.Source) *parts {
	t.Helper()
	p := &parts{mints: &mints{}, metrics: prometheus.NewRegistry()}
	var err error
	p.Parts, err = tokenauthorizer.NewParts(tokenauthorizer.Config{
		Source: source, Server: server.Config{Endpoints: server.Endpoints{GRPC: "127.0.0.1:0"}},
		Hub: &rest.Config{Host: "http://hub.invalid", Transport: p.mints}, Clock: clock.RealClock{}, Log: logr.Discard(), Metrics: p.metrics,
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// member is a managed cluster with keys of its own, whose workloads become the
// ServiceAccount of the cluster's name.
type member struct {
	name string
	keys []*testissuer.Key
	// from is the namespace whose workloads are allowed something.
	from     string
	audience string
}

func newMember(t *testing.T, name string) member {
	t.Helper()
	return member{name: name, keys: []*testissuer.Key{testissuer.NewKey(t, jwk.ES256)}, from: "app", audience: audience}
}

func (m member) issuer() string { return "https://" + m.name + ".example.com" }

func (m member) token(t *testing.T) string {
	t.Helper()
	return m.keys[0].Token(t, testissuer.BoundClaims(m.issuer(), "app", "reader", clock.RealClock{}.Now().Add(-time.Second)))
}

// text is the cluster in a file.
func (m member) text(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("- {name: %s, issuer: %q, audiences: [%q], keys: {jwks: %s}, allow: [{namespaces: [%s], mapTo: {namespace: team, name: %s}}]}\n",
		m.name, m.issuer(), m.audience, testissuer.JWKS(t, m.keys...), m.from, m.name)
}

// configure takes over a file with the members.
func (p *parts) configure(t *testing.T, members ...member) {
	t.Helper()
	text := []byte("clusters:\n")
	for _, m := range members {
		text = append(text, m.text(t)...)
	}
	c, err := config.Parse(text, config.Options{File: "clusters.yaml"})
	if err == nil {
		err = p.Configure(c)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// object is the cluster's policy on a hub.
func (m member) object() v1alpha1.TokenExchangePolicy {
	object := v1alpha1.TokenExchangePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: m.name, Name: v1alpha1.Name}}
	object.Spec.Audiences = []v1alpha1.Audience{m.audience}
	object.Spec.Allow = []v1alpha1.Rule{{Namespaces: []v1alpha1.Pattern{m.from}, MapTo: v1alpha1.Mapping{Namespace: "team", Name: m.name}}}
	return object
}

// publish has the hub know the cluster, and that it publishes its keys.
func (p *parts) publish(t *testing.T, m member, change func(*keytrust.Cluster)) {
	t.Helper()
	cluster := keytrust.Cluster{Name: m.name, UID: "uid-" + m.name, Accepted: true, Joined: true}
	if change != nil {
		change(&cluster)
	}
	if err := p.Observe(keytrust.Candidate{Cluster: cluster, Data: testissuer.Published(t, m.issuer(), m.name, "uid-"+m.name, m.keys...)}); err != nil {
		t.Fatal(err)
	}
}

// rule takes over the policies of the members.
func (p *parts) rule(t *testing.T, members ...member) {
	t.Helper()
	objects := config.Objects{}
	for _, m := range members {
		objects.Policies = append(objects.Policies, m.object())
	}
	if err := p.Configure(config.FromHub(objects, config.Options{})); err != nil {
		t.Fatal(err)
	}
}

// remembered is how many tokens were known as verified, and how many were not.
func (p *parts) remembered(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := p.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, family := range families {
		if family.GetName() == "ocm_extauthz_verify_cache" {
			for _, m := range family.GetMetric() {
				out[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	return out
}

// TestChangesLeaveNeighboursAlone: while rules, keys and acceptance of one cluster
// change, another cluster's tokens stay verified and exchanged.
func TestChangesLeaveNeighboursAlone(t *testing.T) {
	t.Parallel()
	const changes = 50
	for _, tc := range []struct {
		name   string
		source tokenauthorizer.Source
		change func(t *testing.T, p *parts, i int, moving, still member)
	}{
		{name: "its rules in a file", source: inFile, change: func(t *testing.T, p *parts, i int, moving, still member) {
			t.Helper()
			moving.from = fmt.Sprint("app", i)
			p.configure(t, moving, still)
		}},
		{name: "its keys in a file", source: inFile, change: func(t *testing.T, p *parts, i int, moving, still member) {
			t.Helper()
			moving.keys = moving.keys[i%2 : i%2+1]
			p.configure(t, moving, still)
		}},
		{name: "its entry in a file", source: inFile, change: func(t *testing.T, p *parts, i int, moving, still member) {
			t.Helper()
			p.configure(t, []member{still, moving}[:1+i%2]...)
		}},
		{name: "its policy on the hub", source: onHub, change: func(t *testing.T, p *parts, i int, moving, still member) {
			t.Helper()
			moving.from = fmt.Sprint("app", i)
			p.rule(t, moving, still)
		}},
		{name: "the keys that it publishes", source: onHub, change: func(t *testing.T, p *parts, i int, moving, _ member) {
			t.Helper()
			moving.keys = moving.keys[i%2 : i%2+1]
			p.publish(t, moving, nil)
		}},
		{name: "whether the hub accepts it", source: onHub, change: func(t *testing.T, p *parts, i int, moving, _ member) {
			t.Helper()
			p.publish(t, moving, func(c *keytrust.Cluster) { c.Accepted = i%2 == 0 })
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p, moving, still := newParts(t, tc.source), newMember(t, "moving"), newMember(t, "still")
			moving.keys = append(moving.keys, testissuer.NewKey(t, jwk.ES256))
			if tc.source.FromHub {
				p.publish(t, moving, nil)
				p.publish(t, still, nil)
				p.HubSynced()
				p.rule(t, moving, still)
			} else {
				p.configure(t, moving, still)
			}
			token := still.token(t)
			requests := 0
			ask := func() {
				requests++
				if _, err := p.Authorize(t.Context(), token); err != nil {
					t.Errorf("request %d: %v", requests, err)
				}
			}
			ask()
			ctx, cancel := context.WithCancel(t.Context())
			var asking sync.WaitGroup
			asking.Go(func() {
				for ctx.Err() == nil {
					ask()
				}
			})
			for i := range changes {
				tc.change(t, p, i, moving, still)
			}
			cancel()
			asking.Wait()
			ask()
			if n := p.mints.count("still"); n != 1 {
				t.Errorf("%d tokens were minted for the cluster that did not change, want 1", n)
			}
			// Some requests are decided twice, which is a second hit.
			if got := p.remembered(t); got["miss"] != 1 || got["hit"] < float64(requests-1) {
				t.Errorf("of %d requests the token was known in %v and verified in %v", requests, got["hit"], got["miss"])
			}
		})
	}
}

// TestKeysAndRulesAreOneSwitch: a token that is allowed nothing under either of two
// configurations is allowed nothing while one becomes the other, whichever of keys
// and rules would come first.
func TestKeysAndRulesAreOneSwitch(t *testing.T) {
	t.Parallel()
	p, one := newParts(t, inFile), newMember(t, "cluster1")
	token := one.token(t)
	one.from = "elsewhere" // Its key counts, and it is allowed nothing.
	two := newMember(t, "cluster1")
	p.configure(t, one)
	ctx, cancel := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			for ctx.Err() == nil {
				if _, err := p.Authorize(t.Context(), token); err == nil {
					t.Error("the keys of one configuration met the rules of the other")
					return
				}
			}
		})
	}
	for range 200 {
		p.configure(t, two)
		p.configure(t, one)
	}
	cancel()
	asking.Wait()
}

// TestNothingIsAllowedAfterASwitch: a request whose token is being minted while
// what allowed it goes is denied, and gets no token.
func TestNothingIsAllowedAfterASwitch(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		source tokenauthorizer.Source
		change func(t *testing.T, p *parts, m, neighbour member)
		want   denial.Reason // Empty: it is allowed.
	}{
		{name: "the rule goes", source: inFile, change: func(t *testing.T, p *parts, m, neighbour member) {
			t.Helper()
			m.from = "elsewhere"
			p.configure(t, m, neighbour)
		}, want: denial.NotAllowed},
		{name: "the key goes", source: inFile, change: func(t *testing.T, p *parts, m, neighbour member) {
			t.Helper()
			m.keys = newMember(t, m.name).keys
			p.configure(t, m, neighbour)
		}, want: denial.UnknownKey},
		{name: "the audience changes", source: inFile, change: func(t *testing.T, p *parts, m, neighbour member) {
			t.Helper()
			m.audience = "https://other.example.com"
			p.configure(t, m, neighbour)
		}, want: denial.WrongAudience},
		{name: "the cluster goes", source: inFile, change: func(t *testing.T, p *parts, _, neighbour member) {
			t.Helper()
			p.configure(t, neighbour)
		}, want: denial.UnknownIssuer},
		{name: "the policy on the hub changes", source: onHub, change: func(t *testing.T, p *parts, m, neighbour member) {
			t.Helper()
			m.from = "elsewhere"
			p.rule(t, m, neighbour)
		}, want: denial.NotAllowed},
		{name: "another key is published", source: onHub, change: func(t *testing.T, p *parts, m, _ member) {
			t.Helper()
			m.keys = newMember(t, m.name).keys
			p.publish(t, m, nil)
		}, want: denial.UnknownKey},
		{name: "the hub denies the cluster", source: onHub, change: func(t *testing.T, p *parts, m, _ member) {
			t.Helper()
			p.publish(t, m, func(c *keytrust.Cluster) { c.Accepted = false })
		}, want: denial.UnknownIssuer},
		{name: "a neighbour changes", source: inFile, change: func(t *testing.T, p *parts, m, neighbour member) {
			t.Helper()
			neighbour.from, neighbour.keys = "elsewhere", newMember(t, neighbour.name).keys
			p.configure(t, m, neighbour)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p, m, neighbour := newParts(t, tc.source), newMember(t, "cluster1"), newMember(t, "neighbour")
			if tc.source.FromHub {
				p.publish(t, m, nil)
				p.publish(t, neighbour, nil)
				p.HubSynced()
				p.rule(t, m, neighbour)
			} else {
				p.configure(t, m, neighbour)
			}
			entered, release := p.mints.block()
			defer release()
			token, answered := m.token(t), make(chan error, 1)
			go func() {
				d, err := p.Authorize(t.Context(), token)
				if err != nil && d.Token.Value != "" {
					t.Error("a refused request got a token")
				}
				answered <- err
			}()
			select {
			case <-entered:
			case err := <-answered:
				t.Fatalf("answered before a token was made: %v", err)
			}
			tc.change(t, p, m, neighbour)
			release()
			got := <-answered
			switch {
			case tc.want == "" && got != nil:
				t.Errorf("refused: %v", got)
			case tc.want != "" && (got == nil || denial.Of(got).Reason != tc.want):
				t.Errorf("got %v, want %s", got, tc.want)
			}
			if n := p.mints.count("cluster1"); n != 1 {
				t.Errorf("%d tokens were minted, want 1", n)
			}
		})
	}
}
