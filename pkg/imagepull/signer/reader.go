package signer

import (
	"context"
	"fmt"
	"slices"
	"time"

	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
)

// Times of a Reader.
const (
	period         = time.Minute
	requestTimeout = 15 * time.Second
)

// path is where an API server serves the key set of ServiceAccounts' tokens.
const path = "/openid/v1/jwks"

// Source returns the ids of the keys that the cluster publishes.
type Source func(context.Context) ([]string, error)

// KeySet returns the Source for a connection: the key set (RFC 7517 §5) that the API
// server serves.
func KeySet(config *rest.Config) (Source, error) {
	config = rest.CopyConfig(config)
	config.AcceptContentTypes = "" // A key set has a media type of its own.
	config.NegotiatedSerializer = kubescheme.Codecs.WithoutConversion()
	paths, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("prepare to read the cluster's signing keys: %w", err)
	}
	return func(ctx context.Context) ([]string, error) {
		data, err := paths.Get().AbsPath(path).DoRaw(ctx)
		if err != nil {
			return nil, err
		}
		return KeyIDs(data)
	}, nil
}

// KeyIDs are the ids of the keys in a key set.
func KeyIDs(data []byte) ([]string, error) {
	set, err := jwk.Parse(data)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(set.Keys))
	for i, key := range set.Keys {
		ids[i] = key.ID
	}
	return ids, nil
}

// Reader keeps Keys up to date. It is a manager.Runnable.
type Reader struct {
	// Keys is kept up to date.
	Keys *Keys
	// Source is read each minute.
	Source Source
	// Changed is called when keys were retired, or can be from now on. It returns at
	// once.
	Changed func()
	// Clock is the time.
	Clock clock.WithTicker
	// Metrics reports the reads.
	Metrics *Metrics

	known   []string
	settled bool
	failing bool
}

// Start implements manager.Runnable: it reads until ctx ends, and no error ends it.
func (r *Reader) Start(ctx context.Context) error {
	for {
		r.read(ctx)
		if !pause.For(ctx, r.Clock, period) {
			return nil
		}
	}
}

// read reads the key set once.
func (r *Reader) read(ctx context.Context) {
	err := r.publish(ctx)
	if ctx.Err() != nil {
		return
	}
	r.Metrics.observe(err)
	log := klog.FromContext(ctx).WithName("pullsecret.signer")
	switch {
	case err != nil && !r.failing:
		log.Info("Failed to read the cluster's signing keys; pull secrets are not refreshed when a key is retired", "reason", err.Error())
	case err == nil && r.failing:
		log.Info("Reading the cluster's signing keys succeeded again")
	}
	r.failing = err != nil
	known, settled := r.Keys.known()
	changed := settled && (!r.settled || !slices.Equal(known, r.known))
	r.settled = settled
	if changed {
		r.known = known
		log.Info("Signing keys changed", "keys", known)
		r.Changed()
	}
}

func (r *Reader) publish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	ids, err := r.Source(ctx)
	if err != nil {
		return err
	}
	r.Keys.publish(ids)
	return nil
}
