package subject_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

// remembered is a verifier that has verified a token once.
type remembered struct {
	*hostile

	verifier *subject.Verifier
	clock    *clocktesting.FakePassiveClock
	token    string
	rules    *subject.Rules
}

func newRemembered(t *testing.T, changes object) *remembered {
	t.Helper()
	h := newHostile(t)
	r := &remembered{hostile: h, clock: h.now(), token: h.changed(t, changes), rules: strict()}
	r.verifier = subject.NewVerifier(h.keys, func(string) *subject.Rules { return r.rules }, r.clock)
	if err := r.verify(t); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *remembered) verify(t *testing.T) error {
	t.Helper()
	_, err := r.verifier.Verify(t.Context(), r.token)
	return err
}

// looked says whether verifying once more looked at the keys.
func (r *remembered) looked(t *testing.T) (bool, error) {
	t.Helper()
	before := r.keys.lookups.Load()
	err := r.verify(t)
	return r.keys.lookups.Load() != before, err
}

func (r *remembered) pass(d time.Duration) { r.clock.SetTime(r.clock.Now().Add(d)) }

func TestRemembered(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		short  bool // It ends four seconds after it is verified.
		then   func(*remembered)
		looked bool
		want   denial.Reason // Empty: it is taken.
	}{
		{name: "at once it is known", then: func(*remembered) {}},
		{name: "for a minute it is known", then: func(r *remembered) { r.pass(time.Minute - 1) }},
		{name: "after a minute it is verified again", then: func(r *remembered) { r.pass(time.Minute) }, looked: true},
		{name: "when a key goes it is verified again", then: func(r *remembered) { r.keys.generation.Add(1) }, looked: true},
		{name: "when its key goes it is refused", then: func(r *remembered) {
			r.keys.fail(denial.New(denial.UnknownKey, "it is gone"))
			r.keys.generation.Add(1)
		}, looked: true, want: denial.UnknownKey},
		{name: "when its cluster's rules change it is verified again", then: func(r *remembered) { r.rules = strict() }, looked: true},
		{name: "when they demand another audience it is refused", then: func(r *remembered) {
			r.rules = strict()
			r.rules.Audiences = []string{"https://other.example.com"}
		}, looked: true, want: denial.WrongAudience},
		{name: "when its cluster has no rules any more it is refused", then: func(r *remembered) { r.rules = nil }, looked: true, want: denial.NotAllowed},
		{name: "at its end it is refused", short: true, then: func(r *remembered) { r.pass(4 * time.Second) }, looked: true, want: denial.Expired},
		{name: "before its end it is known", short: true, then: func(r *remembered) { r.pass(4*time.Second - 1) }},
		{name: "when the clock is set back before its beginning it is refused", then: func(r *remembered) { r.pass(-time.Minute) }, looked: true, want: denial.NotYetValid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRemembered(t, nil)
			if tt.short {
				r.token = r.changed(t, object{"exp": r.issued + 5})
				if err := r.verify(t); err != nil {
					t.Fatal(err)
				}
			}
			tt.then(r)
			looked, err := r.looked(t)
			if looked != tt.looked {
				t.Errorf("looked at the keys: %v, want %v", looked, tt.looked)
			}
			if tt.want != "" {
				wantReason(t, err, tt.want)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOneClustersKeysAreNoOthers: a cluster whose keys change has its own tokens
// verified again, and no other's.
func TestOneClustersKeysAreNoOthers(t *testing.T) {
	t.Parallel()
	r := newRemembered(t, nil)
	still := newForge(t, "still", jwk.RS256)
	r.keys.add("still", issuer, still.key())
	moving := r.token
	r.token = still.token(t, r.claims)
	if err := r.verify(t); err != nil {
		t.Fatal(err)
	}
	r.keys.generation.Add(1)
	if looked, err := r.looked(t); looked || err != nil {
		t.Errorf("another cluster's key went: looked %v, %v", looked, err)
	}
	r.token = moving
	if looked, err := r.looked(t); !looked || err != nil {
		t.Errorf("its own key went: looked %v, %v", looked, err)
	}
}

// TestRememberedAtItsOldestAge: the age counts for what is remembered as well.
func TestRememberedAtItsOldestAge(t *testing.T) {
	t.Parallel()
	r := newRemembered(t, nil)
	r.rules = strict()
	r.rules.MaxAge = 3 * time.Second // It is one second old.
	if err := r.verify(t); err != nil {
		t.Fatal(err)
	}
	r.pass(2*time.Second - 1)
	if looked, err := r.looked(t); looked || err != nil {
		t.Errorf("before its oldest age: looked at the keys: %v, %v", looked, err)
	}
	r.pass(1)
	wantReason(t, r.verify(t), denial.TooOld)
}

// TestForgottenWhileVerifying has a key go while a token that it signed is
// verified: what was found before must not be remembered for after.
func TestForgottenWhileVerifying(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	without := new(keyring).add("forged", issuer)
	without.generation.Add(1)
	var verifier, next *subject.Verifier
	rules := strict()
	verifier = subject.NewVerifier(h.keys, func(string) *subject.Rules {
		if next == nil { // Between the signature and the end of the chain.
			next = verifier.With(without, always(rules))
		}
		return rules
	}, h.now())
	token := h.changed(t, nil)
	if _, err := verifier.Verify(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	_, err := next.Verify(t.Context(), token)
	wantReason(t, err, denial.UnknownKey)
}

// TestRefusedIsNotRemembered has a token taken as soon as its key is known.
func TestRefusedIsNotRemembered(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	late := newForge(t, "late", jwk.RS256)
	verifier := subject.NewVerifier(h.keys, always(strict()), h.now())
	token := late.token(t, h.claims)
	_, err := verifier.Verify(t.Context(), token)
	wantReason(t, err, denial.UnknownKey)
	h.keys.add("forged", issuer, late.key())
	if _, err := verifier.Verify(t.Context(), token); err != nil {
		t.Error(err)
	}
}

// TestLongTokensAreNotRemembered: one token must not hold on to much memory.
func TestLongTokensAreNotRemembered(t *testing.T) {
	t.Parallel()
	r := newRemembered(t, object{"x": strings.Repeat("x", 8<<10)})
	if looked, err := r.looked(t); !looked || err != nil {
		t.Errorf("looked at the keys: %v, %v", looked, err)
	}
}

// TestLookupFails has the reasons of the key store reach the caller.
func TestLookupFails(t *testing.T) {
	t.Parallel()
	gone, leave := context.WithCancel(t.Context())
	leave()
	for name, tt := range map[string]struct {
		err  error
		ctx  context.Context //nolint:containedctx // A table of contexts.
		want denial.Reason
	}{
		"keys that cannot be had":   {denial.New(denial.KeysUnavailable, "x"), t.Context(), denial.KeysUnavailable},
		"a key of two clusters":     {denial.New(denial.AmbiguousKey, "x"), t.Context(), denial.AmbiguousKey},
		"a wrapped reason":          {fmt.Errorf("x: %w", denial.New(denial.UnknownKey, "x")), t.Context(), denial.UnknownKey},
		"an error without a reason": {errors.New("x"), t.Context(), denial.KeysUnavailable},
		"a caller that left":        {context.Canceled, gone, denial.Deadline},
	} {
		h := newHostile(t)
		h.keys.fail(tt.err)
		_, err := subject.NewVerifier(h.keys, always(strict()), h.now()).Verify(tt.ctx, h.changed(t, nil))
		if denied, ok := errors.AsType[*denial.Error](err); !ok || denied.Reason != tt.want {
			t.Errorf("%s: got %v, want %s", name, err, tt.want)
		}
	}
}

// TestManyAtOnce is for the race detector: tokens come while keys and rules go.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	var mu sync.Mutex
	rules := strict()
	verifier := subject.NewVerifier(h.keys, func(string) *subject.Rules {
		mu.Lock()
		defer mu.Unlock()
		return rules
	}, h.now())
	var tokens []string
	for i := range 8 {
		tokens = append(tokens, h.changed(t, object{"jti": strconv.Itoa(i)}))
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 200 {
				got, err := verifier.Verify(t.Context(), tokens[i%len(tokens)])
				if err != nil || got.Token.ID != strconv.Itoa(i%len(tokens)) {
					t.Errorf("got %+v, %v", got, err)
					return
				}
			}
		})
	}
	wg.Go(func() {
		for range 20 {
			h.keys.generation.Add(1)
			mu.Lock()
			rules = strict()
			mu.Unlock()
		}
	})
	wg.Wait()
}
