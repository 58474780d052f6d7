package imagepull_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/token"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/imageregistry"
)

// checks are the two ways in which a registry checks tokens.
var checks = map[string][]string{"by TokenReview": nil, "by published keys": {imageregistry.Offline}}

// TestPull pulls with the pull secret of a ServiceAccount, and with what must not do.
func TestPull(t *testing.T) {
	t.Parallel()
	for name, flags := range checks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := w.serve(t, flags...)
			pushed := w.push(t, r, audience)
			w.use(t, r)
			app, stranger := w.account(t, w.shop), w.account(t, w.other)
			w.start(t)
			secret := w.listed(t, app)
			w.listed(t, stranger)
			if pulled, err := w.pull(t, r, app); err != nil || pulled != pushed {
				t.Errorf("pulled %q, want %q: %v\n%s", pulled, pushed, err, r.Log())
			}
			_, err := w.pull(t, r, stranger)
			refused(t, r, err, w.other+"/app may not pull "+w.shop+"/app")

			bystander := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.shop, Name: "bystander"}}
			w.create(t, bystander)
			if _, err := w.pull(t, r, bystander); err == nil {
				t.Error("a ServiceAccount that is not opted in pulls")
			}
			elsewhere := authenticationv1.TokenRequestSpec{Audiences: []string{"elsewhere.example.com"}}
			refused(t, r, w.pullWith(t, r, cluster.Token(t, w.shop, "app", elsewhere)), "audience")
			refused(t, r, w.pullWith(t, r, cluster.Token(t, w.shop, "app", authenticationv1.TokenRequestSpec{})), "audience")
			refused(t, r, w.pullWith(t, r, "guessed"), "refused: ")
			// And the token is of use for nothing else.
			as := cluster.ClientFor(t, cluster.ConfigForToken(tokenIn(t, secret)))
			if err := as.Create(t.Context(), &authenticationv1.SelfSubjectReview{}); !apierrors.IsUnauthorized(err) {
				t.Errorf("the API server takes the token: %v", err)
			}
		})
	}
}

// TestPullInEveryFormat pulls with what is stored in the older format, or in both.
func TestPullInEveryFormat(t *testing.T) {
	t.Parallel()
	for _, format := range imagepull.Formats() {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.config.Token.Format = format
			r := w.serve(t)
			pushed := w.push(t, r, audience)
			w.use(t, r)
			app := w.account(t, w.shop)
			w.start(t)
			w.listed(t, app)
			if pulled, err := w.pull(t, r, app); err != nil || pulled != pushed {
				t.Errorf("pulled %q, want %q: %v\n%s", pulled, pushed, err, r.Log())
			}
		})
	}
}

// TestPullWithThePresetOfOpenShift pulls from a registry that takes tokens for the
// API server, as OpenShift's integrated one does.
func TestPullWithThePresetOfOpenShift(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.Preset, w.config.Audience, w.config.Namespaces = imagepull.OpenShift, "", []string{w.shop, w.other}
	w.config.Token = token.Spec{TTL: time.Hour, Username: "<token>", Format: imagepull.DockerCfg}
	const issuer = "https://kubernetes.default.svc.cluster.local" // Also the audience of the API server.
	r := w.serve(t, "--audience", issuer)
	app := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.shop, Name: "app"}}
	w.create(t, app)
	pushed := w.push(t, r, issuer)
	w.use(t, r)
	w.start(t)
	await.Success(t, patience, "a pull succeeds", func(context.Context) error {
		pulled, err := w.pull(t, r, app)
		if err == nil && pulled != pushed {
			err = fmt.Errorf("pulled %q, want %q", pulled, pushed)
		}
		return err
	})
}

// TestRotationUnderPulls replaces the token while images are pulled: no pull
// fails, because a replaced token is good until it expires.
func TestRotationUnderPulls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asking, deciding, later := w.serve(t), w.serve(t, imageregistry.Offline), w.serve(t, imageregistry.Offline, "--ahead", (ttl+time.Hour).String())
	w.push(t, asking, audience)
	w.use(t, asking, deciding)
	app := w.account(t, w.shop)
	w.start(t)
	first := w.listed(t, app)
	pulls := w.pulling(t, app, asking, deciding)
	pulls.round(t)
	w.clock.Step(8 * time.Hour)
	last := first
	for range 2 {
		// By the moved clock every new token is due, after a minute. The controller's
		// queue goes by the real one, so it is made to look.
		w.clock.Step(time.Minute)
		w.touch(t, last)
		last = w.changed(t, app, last)
		pulls.round(t)
	}
	pulls.stop()
	if last.UID != first.UID {
		t.Error("the Secret was recreated")
	}
	for _, r := range []*imageregistry.Server{asking, deciding} {
		for _, secret := range []*corev1.Secret{first, last} {
			if err := w.pullWith(t, r, tokenIn(t, secret)); err != nil {
				t.Errorf("%v\n%s", err, r.Log())
			}
		}
	}
	refused(t, later, w.pullWith(t, later, tokenIn(t, last)), "expired")
}

// puller pulls from registries, one after the other, until it is stopped.
type puller struct {
	rounds   atomic.Int64
	stopping atomic.Bool
	stopped  chan struct{}
}

// pulling starts a puller, whose failures are the test's.
func (w *world) pulling(t *testing.T, account *corev1.ServiceAccount, registries ...*imageregistry.Server) *puller {
	t.Helper()
	p := &puller{stopped: make(chan struct{})}
	go func() {
		defer close(p.stopped)
		for !p.stopping.Load() {
			for _, r := range registries {
				if _, err := w.pull(t, r, account); err != nil {
					t.Errorf("round %d: %v\n%s", p.rounds.Load(), err, r.Log())
				}
			}
			p.rounds.Add(1)
		}
	}()
	t.Cleanup(p.stop)
	return p
}

// round waits for a round of pulls that began after the call.
func (p *puller) round(t *testing.T) {
	t.Helper()
	begun := p.rounds.Load()
	await.Condition(t, patience, "another round of pulls", func(context.Context) (bool, error) {
		return p.rounds.Load() >= begun+2, nil // The one under way does not count.
	})
}

// stop returns when the last pull has ended.
func (p *puller) stop() {
	p.stopping.Store(true)
	<-p.stopped
}

// TestTokenEndsWithItsSecret: a token is bound to the Secret. A registry that asks
// the cluster refuses it once the Secret is gone; one that checks tokens itself
// cannot know, and takes it until it expires.
func TestTokenEndsWithItsSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asking, deciding := w.serve(t), w.serve(t, imageregistry.Offline)
	w.push(t, asking, audience)
	w.use(t, asking, deciding)
	app := w.account(t, w.shop)
	w.start(t)
	before := w.listed(t, app)
	if err := w.admin.Delete(t.Context(), before.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	w.voided(t, asking, tokenIn(t, before))
	if err := w.pullWith(t, deciding, tokenIn(t, before)); err != nil {
		t.Errorf("%v\n%s", err, deciding.Log())
	}
	after := w.changed(t, app, before)
	if after.UID == before.UID {
		t.Error("the Secret is the same")
	}
	for _, r := range []*imageregistry.Server{asking, deciding} {
		if _, err := w.pull(t, r, app); err != nil {
			t.Errorf("with the new Secret: %v\n%s", err, r.Log())
		}
	}
}

// TestTokenEndsWithItsServiceAccount: as with the Secret, which goes as well.
func TestTokenEndsWithItsServiceAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asking := w.serve(t)
	w.push(t, asking, audience)
	w.use(t, asking)
	app := w.account(t, w.shop)
	w.start(t)
	secret := w.listed(t, app)
	if err := w.admin.Delete(t.Context(), app.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	w.voided(t, asking, tokenIn(t, secret))
	await.Condition(t, patience, "the pull secret is gone", func(ctx context.Context) (bool, error) {
		return w.secret(ctx, t, app) == nil, nil
	})
	// A new one of that name does not bring the token back.
	again := w.account(t, w.shop)
	w.listed(t, again)
	if _, err := w.pull(t, asking, again); err != nil {
		t.Errorf("%v\n%s", err, asking.Log())
	}
	refused(t, asking, w.pullWith(t, asking, tokenIn(t, secret)), "not authenticated")
}

// voided waits until a registry refuses a token: the API server remembers for
// some seconds that a token was good.
func (w *world) voided(t *testing.T, r *imageregistry.Server, token string) {
	t.Helper()
	var err error
	await.Condition(t, patience, "the token is refused", func(context.Context) (bool, error) {
		err = w.pullWith(t, r, token)
		return err != nil, nil
	})
	refused(t, r, err, "not authenticated")
}

// TestRegistryMoves: the images are served under another host, and the same
// Secret is for that one.
func TestRegistryMoves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	from, to := w.serve(t), w.serve(t)
	pushed := w.push(t, from, audience)
	w.use(t, from)
	app := w.account(t, w.shop)
	w.start(t)
	first := w.listed(t, app)
	pulls := func(registries ...*imageregistry.Server) {
		t.Helper()
		for _, r := range registries {
			if pulled, err := w.pull(t, r, app); err != nil || pulled != pushed {
				t.Errorf("pulled %q, want %q: %v\n%s", pulled, pushed, err, r.Log())
			}
		}
	}
	pulls(from)
	w.clock.Step(time.Minute)
	w.use(t, from, to) // While it moves, there are both.
	both := w.changed(t, app, first)
	pulls(from, to)
	w.clock.Step(time.Minute)
	w.use(t, to)
	last := w.changed(t, app, both)
	pulls(to)
	if last.UID != first.UID {
		t.Error("the Secret was recreated")
	}
	if strings.Contains(content(last), from.Address) {
		t.Error("the Secret is still for the former host")
	}
	if _, err := w.pull(t, from, app); err == nil {
		t.Error("the former host can still be pulled from")
	}
}
