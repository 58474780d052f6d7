package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/hubclient"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

const (
	requestTimeout = 15 * time.Second
	// fileRecheck is how often a missing bootstrap kubeconfig file is read again.
	fileRecheck = time.Minute
)

// bootstrap obtains a credential with the bootstrap kubeconfig and stores it.
func (a *Agent) bootstrap(ctx context.Context, s *snapshot, need credential.Need) error {
	report := Report{Phase: Bootstrapping, Bootstrap: functional(), Hub: Condition{s.hubReason(need), need.Message}}
	if s.bootstrap == nil {
		report.Bootstrap = a.missingBootstrap(s.bootstrapErr)
		a.eventLog.report(report)
		pause.For(ctx, a.config.Clock, fileRecheck) // The creation of the Secret ends ctx.
		return nil
	}
	a.eventLog.report(report)
	a.events.normal(names.EventNoValidCertificate, "Bootstrap", "%s", need.Message)
	err := a.register(ctx, s, report)
	if err != nil && ctx.Err() == nil {
		report.Bootstrap = bootstrapTrouble(s.bootstrap, err)
		a.eventLog.report(report)
	}
	return err
}

func (a *Agent) missingBootstrap(err error) Condition {
	if errors.Is(err, errNoBootstrap) {
		return Condition{names.ReasonBootstrapSecretMissing, fmt.Sprintf("waiting for Secret %s in namespace %s with a bootstrap kubeconfig; kubectl ocm join creates it", a.config.Secrets.Bootstrap, a.config.Namespace)}
	}
	return Condition{names.ReasonBootstrapSecretError, err.Error()}
}

// errPreflight is returned for a bootstrap identity without the permissions to join.
var errPreflight = errors.New("the bootstrap identity lacks permissions on the hub")

func bootstrapTrouble(hub *kubeconfig.Hub, err error) Condition {
	switch {
	case apierrors.IsUnauthorized(err):
		return Condition{names.ReasonBootstrapSecretUnauthorized, fmt.Sprintf(
			"the hub at %s rejects the bootstrap credential, which may have expired; run kubectl ocm get token on the hub, and the join command that it prints on this cluster", hub.Cluster.Server)}
	case errors.Is(err, errPreflight), apierrors.IsForbidden(err):
		return Condition{names.ReasonBootstrapSecretUnauthorized, err.Error()}
	}
	return Condition{names.ReasonBootstrapSecretError, fmt.Sprintf("the hub at %s: %v", hub.Cluster.Server, err)}
}

func (a *Agent) register(ctx context.Context, s *snapshot, report Report) error {
	config, err := hubclient.Static(*s.bootstrap, a.store.bootstrapDir(), userAgent)
	if err != nil {
		return err
	}
	hub, err := newHubClient(config)
	if err != nil {
		return err
	}
	if err := preflight(ctx, hub, s.driver.Permissions()); err != nil {
		return err
	}
	ensure := func(ctx context.Context) error { return a.ensureManagedCluster(ctx, hub, s) }
	if err := ensure(ctx); err != nil {
		return err
	}
	report.Phase = Requested
	show := func(c Condition) {
		report.Hub.Message = c.Message
		a.eventLog.report(report)
	}
	o := &obtaining{agent: a, snapshot: s, hub: hub, kubeconfig: *s.bootstrap, purpose: joining, waits: show, fails: show, ensure: ensure}
	issued, err := o.run(ctx)
	if err != nil {
		return err
	}
	data, err := s.hubData(*s.bootstrap, issued.Data)
	if err != nil {
		return err
	}
	return a.storeCredential(ctx, s, data, issued)
}

// preflight reviews the permissions of the bootstrap identity on its ManagedCluster
// and those that the driver needs, and reports all missing ones at once.
func preflight(ctx context.Context, hub client.Client, needed []authorizationv1.ResourceAttributes) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var own []authorizationv1.ResourceAttributes
	for _, verb := range []string{"create", "get"} {
		own = append(own, authorizationv1.ResourceAttributes{Group: names.GroupCluster, Resource: names.ResourceManagedClusters, Verb: verb})
	}
	var missing []string
	for _, permission := range append(own, needed...) {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &permission}}
		err := hub.Create(ctx, review)
		if apierrors.IsForbidden(err) {
			continue // It may not create reviews; the request itself fails if it is not allowed.
		}
		if err != nil {
			return fmt.Errorf("review the bootstrap identity's permissions: %w", err)
		}
		if !review.Status.Allowed {
			missing = append(missing, permission.Verb+" "+permission.Resource+"."+permission.Group)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: %s; bind it to ClusterRole %s", errPreflight, strings.Join(missing, ", "), names.BootstrapClusterRole)
	}
	return nil
}
