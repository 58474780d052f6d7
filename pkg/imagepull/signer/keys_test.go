package signer_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/signer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
)

func TestRetired(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		// history is what each read brings.
		history func(k *signer.Keys, read int)
		reads   int
		retired bool
	}{
		{name: "before the first key set nothing is retired", history: func(*signer.Keys, int) {}, reads: 60},
		{name: "an unknown key waits", history: func(k *signer.Keys, _ int) { k.Publish("new") }, reads: 4},
		{name: "an unknown key is retired after a while", history: func(k *signer.Keys, _ int) { k.Publish("new") }, reads: 5, retired: true},
		{name: "a key that is not the newest stays", history: func(k *signer.Keys, _ int) { k.Publish("new", "old"); k.Signed("new") }, reads: 60},
		{name: "a key that goes is retired", history: func(k *signer.Keys, read int) {
			if read < 30 {
				k.Publish("new", "old")
			} else {
				k.Publish("new")
			}
		}, reads: 35, retired: true},
		{name: "a key that just went stays", history: func(k *signer.Keys, read int) {
			if read < 30 {
				k.Publish("new", "old")
			} else {
				k.Publish("new")
			}
		}, reads: 34},
		{name: "the key of new tokens stays though no server that is read publishes it", history: func(k *signer.Keys, read int) {
			k.Publish("new")
			if read == 0 {
				k.Signed("old")
			}
		}, reads: 60},
		{name: "where the signing key was never published nothing is retired", history: func(k *signer.Keys, _ int) { k.Publish("new"); k.Signed("elsewhere") }, reads: 60},
		{name: "a signing key that went is no obstacle", history: func(k *signer.Keys, read int) {
			if read < 30 {
				k.Publish("new", "old")
				k.Signed("old")
			} else {
				k.Publish("new")
			}
		}, reads: 60, retired: true},
		{name: "a key that signs though it went is not retired", history: func(k *signer.Keys, read int) {
			if read < 30 {
				k.Publish("new", "old")
			} else {
				k.Publish("new")
			}
			if read >= 36 { // It was retired; what the API server issued instead has it again.
				k.Signed("old")
			}
		}, reads: 60},
		{name: "a key that signed though it went is retired once another one signs", history: func(k *signer.Keys, read int) {
			if read < 30 {
				k.Publish("new", "old")
			} else {
				k.Publish("new")
			}
			if read == 36 {
				k.Signed("old")
			}
			if read == 50 {
				k.Signed("new")
			}
		}, reads: 60, retired: true},
		{name: "a key set that catches up retires again", history: func(k *signer.Keys, read int) {
			if read == 0 {
				k.Signed("new")
			}
			if read < 30 {
				k.Publish("old")
			} else {
				k.Publish("new")
			}
		}, reads: 60, retired: true},
		{name: "servers that disagree retire nothing", history: func(k *signer.Keys, read int) {
			if read%2 == 0 {
				k.Publish("new")
			} else {
				k.Publish("old")
			}
		}, reads: 60},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			k := signer.NewKeys()
			for read := range tc.reads {
				tc.history(k, read)
			}
			if got := k.Retired("old"); got != tc.retired {
				t.Errorf("retired: %v", got)
			}
		})
	}
}

// TestTokensThatNameNoKey: they are left alone, and are no change of the keys.
func TestTokensThatNameNoKey(t *testing.T) {
	t.Parallel()
	keys := signer.NewKeys()
	for range 60 {
		keys.Publish("new")
		keys.Signed("")
	}
	if known, _ := keys.Known(); keys.Retired("") || !slices.Equal(known, []string{"new"}) {
		t.Errorf("known keys %q", known)
	}
}

// TestReaderOutlivesFailures: a source that fails, first and later for long, retires
// nothing and is asked again; the first settled knowledge is announced, and each change of it once.
func TestReaderOutlivesFailures(t *testing.T) {
	t.Parallel()
	key := issuer.NewKey(t, "ES256")
	synctest.Test(t, func(t *testing.T) {
		metrics := signer.NewMetrics(prometheus.NewRegistry())
		wall := clock.RealClock{} // The bubble's.
		began := wall.Now()
		var changes atomic.Int32
		keys := signer.NewKeys()
		reader := &signer.Reader{Keys: keys, Clock: wall, Metrics: metrics, Changed: func() { changes.Add(1) }, Source: func(context.Context) ([]string, error) {
			if age := wall.Since(began); age < 10*time.Minute || age > 30*time.Minute && age < 2*time.Hour {
				return nil, errors.New("not now")
			}
			return []string{key.ID}, nil
		}}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = reader.Start(ctx) }()
		wall.Sleep(13*time.Minute + time.Second)
		if keys.Retired("old") || changes.Load() != 0 {
			t.Errorf("%d changes while little is known", changes.Load())
		}
		wall.Sleep(3 * time.Hour)
		if !keys.Retired("old") || keys.Retired(key.ID) || changes.Load() != 1 {
			t.Errorf("%d changes", changes.Load())
		}
		cancel()
		synctest.Wait()
	})
}
