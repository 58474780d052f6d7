package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// stepRecheck is when to take a step without an event: the watched object may be gone
// without one, for example after a restore of the hub.
const stepRecheck = 5 * time.Minute

// userAgent names the agent in the hub's audit log.
const userAgent = "kubectl-ocm/registration-agent"

// newHubClient returns a client for the hub that reads from the API server and can
// watch.
func newHubClient(config *rest.Config) (client.WithWatch, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = userAgent
	s := scheme.New()
	hub, err := client.NewWithWatch(config, client.Options{Scheme: s, Mapper: hubMapper()})
	if err != nil {
		return nil, fmt.Errorf("prepare the hub client: %w", err)
	}
	return hub, nil
}

// obtaining is the process of obtaining a credential.
type obtaining struct {
	agent    *Agent
	snapshot *snapshot
	hub      client.WithWatch
	// kubeconfig is the hub of the pending data.
	kubeconfig kubeconfig.Hub
	purpose    purpose
	// waits is called with the reason to wait, fails with a failure.
	waits func(Condition)
	fails func(Condition)
	// ensure restores the subject of the request after a wait; may be nil.
	ensure func(context.Context) error

	pending   driver.Data
	announced string
}

// run takes the driver's steps until it has a credential or ctx ends. The pending data
// is stored before each step that may depend on it.
func (o *obtaining) run(ctx context.Context) (*driver.Issued, error) {
	a := o.agent
	var err error
	if o.pending, err = a.store.pending(ctx, o.kubeconfig, o.purpose); err != nil {
		return nil, err
	}
	backoff := credential.Backoff{First: time.Second, Most: time.Minute}
	for failures := 0; ; {
		step, err := o.step(ctx)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			failures++
			a.metrics.renewals.WithLabelValues(resultFailure).Inc()
			o.fails(Condition{"Failed", err.Error()})
			if failures > 3 {
				return nil, err // The caller reads the stored state again.
			}
			pause.For(ctx, a.config.Clock, backoff.Delay(failures, o.snapshot.identity.Cluster))
			continue
		case step.Issued != nil:
			return step.Issued, nil
		case step.Again:
			continue
		}
		failures = 0
		o.announce(step)
		o.wait(ctx, step)
	}
}

// step takes one step and stores its pending data.
func (o *obtaining) step(ctx context.Context) (driver.Step, error) {
	if o.ensure != nil && o.announced != "" {
		if err := o.ensure(ctx); err != nil {
			return driver.Step{}, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	step, err := o.snapshot.driver.Obtain(ctx, o.hub, o.pending)
	if err != nil {
		return step, err
	}
	if o.stale(step.Issued) {
		return o.restart(ctx)
	}
	if step.Issued != nil || apiequality.Semantic.DeepEqual(step.Pending, o.pending) {
		return step, nil
	}
	if err := o.agent.store.setPending(ctx, o.kubeconfig, o.purpose, step.Pending); err != nil {
		return step, err
	}
	o.pending = step.Pending
	return step, nil
}

// stale reports whether an issued credential is the stored one.
func (o *obtaining) stale(issued *driver.Issued) bool {
	if issued == nil || o.snapshot.facts.Problem != nil {
		return false
	}
	data, err := o.snapshot.hubData(o.kubeconfig, issued.Data)
	return err == nil && o.snapshot.driver.Fingerprint(data) == o.snapshot.fingerprint()
}

// restart drops the pending data when the issued credential is the stored one, which
// needs to be replaced: a process may have crashed after it stored the credential. A
// driver without pending data issues no other credential, so the hub has to accept
// this one.
func (o *obtaining) restart(ctx context.Context) (driver.Step, error) {
	if len(o.pending) == 0 {
		return driver.Step{Failing: true, Waiting: driver.Waiting{
			Reason: reasonRefused, Message: "waiting for the hub to accept the stored credential: " + o.agent.rejected.why,
		}}, nil
	}
	o.pending = nil
	return driver.Step{Again: true}, o.agent.store.dropPending(ctx)
}

// announce reports what is waited for, and records an event when it is new.
func (o *obtaining) announce(step driver.Step) {
	if step.Failing {
		o.fails(Condition(step.Waiting))
	} else {
		o.waits(Condition(step.Waiting))
	}
	if o.announced == step.Waiting.Reason {
		return
	}
	o.announced = step.Waiting.Reason
	switch {
	case step.Failing:
		o.agent.metrics.renewals.WithLabelValues(resultFailure).Inc()
		o.agent.events.warning(step.Waiting.Reason, "Obtain", "%s", step.Waiting.Message)
	case step.Event != "":
		o.agent.events.normal(step.Event, "Obtain", "%s", step.Waiting.Message)
	}
}

// wait returns when another step can make progress.
func (o *obtaining) wait(ctx context.Context, step driver.Step) {
	limit := stepRecheck
	if step.After > 0 {
		limit = min(limit, step.After)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if step.Watch != nil {
		go func() { // Ends with ctx.
			err := o.watch(ctx, step.Watch)
			if apierrors.IsForbidden(err) {
				return // Not every hub allows the watch; the limit remains.
			}
			if err != nil {
				pause.For(ctx, o.agent.config.Clock, time.Second) // The hub may be restarting.
			}
			cancel()
		}()
	}
	pause.For(ctx, o.agent.config.Clock, limit)
}

// reasonRefused is the reason to wait for a hub that rejects the only credential.
const reasonRefused = "CredentialRefused"

// errWatch is returned when a watch ends without an event.
var errWatch = errors.New("the watch ended")

// watch returns when object has changed.
func (o *obtaining) watch(ctx context.Context, object client.Object) error {
	gvk, err := apiutil.GVKForObject(object, o.hub.Scheme())
	if err != nil {
		return err
	}
	list, err := o.hub.Scheme().New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		return err
	}
	objects, ok := list.(client.ObjectList)
	if !ok {
		return errWatch
	}
	watcher, err := o.hub.Watch(ctx, objects, &client.ListOptions{
		Namespace:     object.GetNamespace(),
		FieldSelector: fields.OneTermEqualSelector("metadata.name", object.GetName()),
		Raw:           &metav1.ListOptions{ResourceVersion: object.GetResourceVersion()},
	})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		if seen, err := apimeta.Accessor(event.Object); err == nil && seen.GetResourceVersion() != object.GetResourceVersion() {
			return nil
		}
	}
	return errWatch
}

// storeCredential stores an issued credential, and then deletes the pending data.
func (a *Agent) storeCredential(ctx context.Context, s *snapshot, data driver.Data, issued *driver.Issued) error {
	if err := a.store.put(ctx, a.config.Secrets.Hub, data); err != nil {
		return err
	}
	a.stored.setObtained(s.driver.Fingerprint(data), a.config.Clock.Now())
	a.metrics.renewals.WithLabelValues(resultSuccess).Inc()
	a.metrics.renewed.Set(float64(a.config.Clock.Now().Unix()))
	a.metrics.setExpiry(issued.Validity)
	a.events.normal(s.driver.Report().Event, "Obtain", "the hub issued a credential that is valid until %s", issued.Validity.Until())
	a.events.normal(names.EventSecretSave, "Obtain", "stored the credential in Secret %s", a.config.Secrets.Hub)
	if err := a.store.dropPending(ctx); err != nil {
		// The credential is stored; the next renewal finds the pending data stale.
		a.log.Info("Failed to delete the pending data", "reason", err.Error())
	}
	if err := a.store.dropAgentName(ctx); err != nil {
		a.log.Info("Failed to delete the recorded agent name", "reason", err.Error())
	}
	return nil
}
