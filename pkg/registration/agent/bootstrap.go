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
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/connection"
)

const (
	requestTimeout = 15 * time.Second
	// fileRecheck is how often a missing bootstrap kubeconfig is looked for
	// where no Secret is watched.
	fileRecheck = time.Minute
)

// bootstrap obtains a credential with the bootstrap kubeconfig and stores it.
func (a *Agent) bootstrap(ctx context.Context, s *snapshot, need credential.Need) error {
	report := Report{Phase: Bootstrapping, Bootstrap: functional(), Hub: Condition{s.hubReason(need), need.Message}}
	if s.bootstrap == nil {
		report.Bootstrap = a.missingBootstrap(s.bootstrapErr)
		a.journal.report(report)
		a.sleep(ctx, fileRecheck) // A Secret that appears ends ctx before.
		return nil
	}
	a.journal.report(report)
	a.events.normal(names.EventNoValidCertificate, "Bootstrap", "%s", need.Message)
	err := a.register(ctx, s, report)
	if err != nil && ctx.Err() == nil {
		report.Bootstrap = bootstrapTrouble(s.bootstrap, err)
		a.journal.report(report)
	}
	return err
}

func (a *Agent) missingBootstrap(err error) Condition {
	if errors.Is(err, errNoBootstrap) {
		return Condition{names.ReasonBootstrapSecretMissing, fmt.Sprintf("waiting for Secret %s in namespace %s with a bootstrap kubeconfig; kubectl ocm join makes it", a.config.Secrets.Bootstrap, a.config.Namespace)}
	}
	return Condition{names.ReasonBootstrapSecretError, err.Error()}
}

// errPreflight says that the hub lets the bootstrap identity in but not do what
// joining takes.
var errPreflight = errors.New("the bootstrap identity lacks permissions on the hub")

func bootstrapTrouble(hub *kubeconfig.Hub, err error) Condition {
	switch {
	case apierrors.IsUnauthorized(err):
		return Condition{names.ReasonBootstrapSecretUnauthorized, fmt.Sprintf(
			"the hub at %s does not accept the bootstrap credential, which may have expired; get a join command with kubectl ocm get token on the hub and run it again", hub.Cluster.Server)}
	case errors.Is(err, errPreflight), apierrors.IsForbidden(err):
		return Condition{names.ReasonBootstrapSecretUnauthorized, err.Error()}
	}
	return Condition{names.ReasonBootstrapSecretError, fmt.Sprintf("the hub at %s: %v", hub.Cluster.Server, err)}
}

func (a *Agent) register(ctx context.Context, s *snapshot, report Report) error {
	config, err := connection.Static(*s.bootstrap, a.store.bootstrapDir())
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
	tell := func(c Condition) {
		report.Hub.Message = c.Message
		a.journal.report(report)
	}
	o := &obtaining{agent: a, snapshot: s, hub: hub, kubeconfig: *s.bootstrap, purpose: joining, waits: tell, fails: tell, ensure: ensure}
	issued, err := o.run(ctx)
	if err != nil {
		return err
	}
	data, err := s.hubData(*s.bootstrap, issued.Data)
	if err != nil {
		return err
	}
	return a.keep(ctx, s, data, issued)
}

// preflight asks the hub whether the bootstrap identity may create and read its
// ManagedCluster and has the permissions that the driver needs, to report all
// that are missing at once.
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
			continue // It may not even ask; the real request will tell.
		}
		if err != nil {
			return fmt.Errorf("review the bootstrap identity's permissions: %w", err)
		}
		if !review.Status.Allowed {
			missing = append(missing, permission.Verb+" "+permission.Resource+"."+permission.Group)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: it may not %s; bind it to ClusterRole %s", errPreflight, strings.Join(missing, ", "), names.BootstrapClusterRole)
	}
	return nil
}
