package review_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/review"
)

// newReviewerOf returns a Reviewer that may review, at the time of a clock.
func newReviewerOf(t *testing.T, settings review.Settings, clock clock.PassiveClock) *review.Reviewer {
	t.Helper()
	r, err := review.New(settings, clock)
	if err != nil {
		t.Fatal(err)
	}
	if settings.KubeconfigFile == "" {
		return r
	}
	// Another token, so that nothing is remembered of those of the test.
	warm := newAccount(t)
	eventually(t, "the reviewer's right", func() error {
		return r.Review(t.Context(), cluster, token(t, warm, settings.Audiences...), identityOf(warm))
	})
	return r
}

// modes returns one Reviewer that asks for every request, and one that remembers
// for ttl, at the time of a clock.
func (g *gate) modes(t *testing.T, ttl time.Duration) (always, cached *review.Reviewer, now *clocktesting.FakePassiveClock) {
	t.Helper()
	now = clocktesting.NewFakePassiveClock(clock.RealClock{}.Now())
	settings := g.always(t)
	always = newReviewerOf(t, settings, now)
	settings.Mode, settings.TTL = review.Cached, ttl
	return always, newReviewerOf(t, settings, now), now
}

func TestDeletedAccount(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	always, cached, now := g.modes(t, time.Minute)
	never := newReviewerOf(t, review.Settings{}, now)

	account := newAccount(t)
	secret := token(t, account, audience)
	id := identityOf(account)
	for mode, r := range map[string]*review.Reviewer{"never": never, "cached": cached, "always": always} {
		if err := r.Review(t.Context(), cluster, secret, id); err != nil {
			t.Fatalf("%s refuses a good token: %v", mode, err)
		}
	}
	if err := cp.Client(t).Delete(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	eventually(t, "always", func() error {
		if err := always.Review(t.Context(), cluster, secret, id); err == nil {
			return errors.New("the account is gone and its token is taken")
		}
		return nil
	})
	wantReason(t, always.Review(t.Context(), cluster, secret, id), denial.Revoked)

	now.SetTime(now.Now().Add(time.Minute - time.Second))
	if err := cached.Review(t.Context(), cluster, secret, id); err != nil {
		t.Errorf("cached looks before its time: %v", err)
	}
	now.SetTime(now.Now().Add(time.Second))
	wantReason(t, cached.Review(t.Context(), cluster, secret, id), denial.Revoked)
	if err := never.Review(t.Context(), cluster, secret, id); err != nil {
		t.Errorf("never looks: %v", err)
	}

	// One of the same name is another.
	again := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name}}
	create(t, again)
	wantReason(t, always.Review(t.Context(), cluster, secret, id), denial.Revoked)
}

func TestDeletedPod(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	always := newReviewerOf(t, g.always(t), clock.RealClock{})
	account := newAccount(t)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: "worker"},
		Spec:       corev1.PodSpec{ServiceAccountName: account.Name, Containers: []corev1.Container{{Name: "main", Image: "example.com/image"}}},
	}
	create(t, pod)
	secret := mint(t, account, authenticationv1.TokenRequestSpec{
		Audiences:      []string{audience},
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	})
	if err := always.Review(t.Context(), cluster, secret, identityOf(account)); err != nil {
		t.Fatal(err)
	}
	if err := cp.Client(t).Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the token of a deleted Pod", func() error {
		if err := always.Review(t.Context(), cluster, secret, identityOf(account)); err == nil {
			return errors.New("it is taken")
		}
		return nil
	})
	wantReason(t, always.Review(t.Context(), cluster, secret, identityOf(account)), denial.Revoked)
}

func TestCalls(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	always, cached, now := g.modes(t, review.DefaultTTL)
	account := newAccount(t)
	first, second := token(t, account, audience), token(t, account, audience)

	calls := func(r *review.Reviewer, secret string, n int) int64 {
		t.Helper()
		before := g.reviews.Load()
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				if err := r.Review(t.Context(), cluster, secret, identityOf(account)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		return g.reviews.Load() - before
	}
	if n := calls(always, first, 5); n != 5 {
		t.Errorf("always: %d calls for 5 requests", n)
	}
	if n := calls(cached, first, 100); n != 1 {
		t.Errorf("cached: %d calls for 100 requests with one token", n)
	}
	if n := calls(cached, second, 1); n != 1 {
		t.Errorf("cached: %d calls for another token of the same account", n)
	}
	now.SetTime(now.Now().Add(review.DefaultTTL))
	if n := calls(cached, first, 10); n != 1 {
		t.Errorf("cached: %d calls once the time is over", n)
	}
	now.SetTime(now.Now().Add(-time.Hour))
	if n := calls(cached, first, 1); n != 1 {
		t.Errorf("cached: %d calls after the clock was set back", n)
	}
}

func TestUnavailable(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	always, cached, now := g.modes(t, review.DefaultTTL)
	account := newAccount(t)
	secret := token(t, account, audience)

	g.answers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	for mode, r := range map[string]*review.Reviewer{"cached": cached, "always": always} {
		err := r.Review(t.Context(), cluster, secret, identityOf(account))
		wantReason(t, err, denial.ReviewUnavailable)
		if denied := denial.Of(err); denied.RetryAfter == 0 || strings.Contains(denied.Detail, secret) {
			t.Errorf("%s: %+v", mode, denied)
		}
	}
	before := g.reviews.Load()
	wantReason(t, cached.Review(t.Context(), cluster, secret, identityOf(account)), denial.ReviewUnavailable)
	if n := g.reviews.Load() - before; n != 0 {
		t.Errorf("%d calls in the second after one failed", n)
	}
	g.answers(nil)
	if err := always.Review(t.Context(), cluster, secret, identityOf(account)); err != nil {
		t.Errorf("always, when the API server is back: %v", err)
	}
	now.SetTime(now.Now().Add(time.Second))
	if err := cached.Review(t.Context(), cluster, secret, identityOf(account)); err != nil {
		t.Errorf("cached, a second after: %v", err)
	}
	g.CloseClientConnections()
	g.Close()
	wantReason(t, always.Review(t.Context(), cluster, secret, identityOf(account)), denial.ReviewUnavailable)
}

// TestImpatientCaller has a call go on for the next request when the caller did
// not wait, as a proxy with a deadline of 200 ms does not.
func TestImpatientCaller(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	settings := g.always(t)
	settings.Mode = review.Cached
	cached := newReviewerOf(t, settings, clock.RealClock{})
	account := newAccount(t)
	secret := token(t, account, audience)
	confirmed := says(t, authenticationv1.TokenReviewStatus{
		Authenticated: true, Audiences: []string{audience},
		User: authenticationv1.UserInfo{Username: names.ServiceAccountUser(account.Namespace, account.Name), UID: string(account.UID)},
	})
	asked, release := make(chan struct{}), make(chan struct{})
	g.answers(func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		<-release
		confirmed(w, r)
	})
	before := g.reviews.Load()
	ctx, leave := context.WithCancel(t.Context())
	go func() { <-asked; leave() }()
	wantReason(t, cached.Review(ctx, cluster, secret, identityOf(account)), denial.Deadline)
	close(release)
	if err := cached.Review(t.Context(), cluster, secret, identityOf(account)); err != nil {
		t.Error(err)
	}
	if n := g.reviews.Load() - before; n != 1 {
		t.Errorf("%d calls, want the one that went on", n)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	account := newAccount(t)
	user := authenticationv1.UserInfo{Username: names.ServiceAccountUser(account.Namespace, account.Name), UID: string(account.UID)}
	tests := []struct {
		name   string
		status authenticationv1.TokenReviewStatus
		want   denial.Reason
	}{
		{"one that is not authenticated", authenticationv1.TokenReviewStatus{Error: strings.Repeat("long ", 1000)}, denial.Revoked},
		{"one without audiences", authenticationv1.TokenReviewStatus{Authenticated: true, User: user}, denial.WrongAudience},
		{"another audience", authenticationv1.TokenReviewStatus{Authenticated: true, User: user, Audiences: []string{apiAudience}}, denial.WrongAudience},
		{"another UID", authenticationv1.TokenReviewStatus{
			Authenticated: true, Audiences: []string{audience}, User: authenticationv1.UserInfo{Username: user.Username, UID: "other"},
		}, denial.ClaimsMismatch},
		{"another account", authenticationv1.TokenReviewStatus{
			Authenticated: true, Audiences: []string{audience}, User: authenticationv1.UserInfo{Username: user.Username + "x", UID: user.UID},
		}, denial.ClaimsMismatch},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t)
			settings := review.Settings{Mode: review.Always, KubeconfigFile: g.kubeconfig(t, "x"), Audiences: []string{audience}}
			r, err := review.New(settings, clock.RealClock{})
			if err != nil {
				t.Fatal(err)
			}
			g.answers(says(t, tt.status))
			err = r.Review(t.Context(), cluster, "token", identityOf(account))
			wantReason(t, err, tt.want)
			if len(err.Error()) > 512 {
				t.Errorf("the detail has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestRealAnswers(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	always := newReviewerOf(t, g.always(t), clock.RealClock{})
	account, other := newAccount(t), newAccount(t)
	wantReason(t, always.Review(t.Context(), cluster, token(t, account, "https://other.example.com"), identityOf(account)), denial.Revoked)
	wantReason(t, always.Review(t.Context(), cluster, token(t, account, audience), identityOf(other)), denial.ClaimsMismatch)
	wantReason(t, always.Review(t.Context(), cluster, "not.a.token", identityOf(account)), denial.Revoked)

	stranger, err := review.New(review.Settings{
		Mode: review.Always, KubeconfigFile: g.kubeconfig(t, token(t, account)), Audiences: []string{audience},
	}, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	err = stranger.Review(t.Context(), cluster, token(t, account, audience), identityOf(account))
	wantReason(t, err, denial.ReviewUnavailable)
	if denied := denial.Of(err); !apierrors.IsForbidden(denied.Err) || !strings.Contains(denied.Detail, "system:auth-delegator") {
		t.Errorf("a reviewer without rights: %v", denied)
	}
	nobody, err := review.New(review.Settings{
		Mode: review.Always, KubeconfigFile: g.kubeconfig(t, "not.a.token"), Audiences: []string{audience},
	}, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	wantReason(t, nobody.Review(t.Context(), cluster, token(t, account, audience), identityOf(account)), denial.ReviewUnavailable)
}

func TestLegacyToken(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	always := newReviewerOf(t, g.always(t), clock.RealClock{})
	account := newAccount(t)
	id := identityOf(account)
	id.Token.Legacy, id.Token.Audiences = true, nil
	if err := always.Review(t.Context(), cluster, cp.LegacyToken(t, account.Namespace, account.Name), id); err != nil {
		t.Error(err)
	}
}

// TestNewCredential has the reviewer's credential replaced in its file, as the
// kubelet does it with a mounted Secret.
func TestNewCredential(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	now := clocktesting.NewFakePassiveClock(clock.RealClock{}.Now())
	settings := g.always(t)
	good, err := os.ReadFile(settings.KubeconfigFile)
	if err != nil {
		t.Fatal(err)
	}
	r := newReviewerOf(t, settings, now)
	account := newAccount(t)
	replace := func(data []byte) error {
		t.Helper()
		if err := os.WriteFile(settings.KubeconfigFile, data, 0o600); err != nil {
			t.Fatal(err)
		}
		now.SetTime(now.Now().Add(10 * time.Second))
		return r.Review(t.Context(), cluster, token(t, account, audience), identityOf(account))
	}
	bad, err := os.ReadFile(g.kubeconfig(t, "not.a.token"))
	if err != nil {
		t.Fatal(err)
	}
	wantReason(t, replace(bad), denial.ReviewUnavailable)
	if err := replace(good); err != nil {
		t.Errorf("with the good credential again: %v", err)
	}
	if err := replace([]byte("junk")); err != nil {
		t.Errorf("with a file that is broken: %v", err)
	}
}
