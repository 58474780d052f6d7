package approval

import (
	"context"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/grant"
)

const (
	// interval is the time between two reads of the hub while waiting.
	interval = time.Second
	// most is how much is printed of what a cluster brought.
	most = 30
	// patience is how long an Approver without Wait waits for the hub's usual
	// reactions, which take seconds.
	patience = 15 * time.Second
)

// DryRun is how much of the writes takes place, in kubectl's terms.
type DryRun int

// The dry-run strategies.
const (
	DryRunNone DryRun = iota
	// DryRunClient decides, and sends no write.
	DryRunClient
	// DryRunServer needs a Client that sends dryRun=All with every write.
	DryRunServer
)

// Say prints a line of progress.
type Say func(format string, args ...any)

// Approver accepts or denies clusters of one hub.
type Approver struct {
	Client client.Client
	Clock  clock.Clock
	// Name is the name of the program in the conditions of the requests.
	Name   string
	Choice Choice
	DryRun DryRun
	// Wait makes the Approver wait for everything that the cluster lacks, as long as
	// the context allows. Without it, the Approver waits only for what the hub usually
	// does within seconds.
	Wait bool
	// Say and Warn print lines that the administrator keeps: what is trusted when a
	// cluster is accepted, and what was left out.
	Say, Warn Say
	// Own, if set, returns the fingerprint of the key of the agent that is to be
	// accepted; "" while it has no request. It is called in every pass and sets
	// Choice.Fingerprint; no other request is approved.
	Own func(context.Context) (string, error)
	// Drivers are the registration drivers that there are.
	Drivers driver.Catalog
	// Hub identifies the hub to a driver where its ClusterManager does not.
	Hub driver.HubSettings
	// Hand, if set, grants and revokes identities with credentials of the administrator.
	// Otherwise the hub controller does.
	Hand *grant.Manual

	// shown are the identities that were printed, by cluster.
	shown map[string]string
	// introduced contains the printed introductions of clusters, by name.
	introduced map[string][]string
	// granted and revoked are the clusters that Hand has settled.
	granted, revoked map[string]bool
}

// Run moves a cluster to the chosen state. It returns an *AwaitError if it stops early,
// because ctx ends or because Wait is not set.
func (a *Approver) Run(ctx context.Context, name string, say Say) error {
	deadline := a.Clock.Now().Add(patience)
	for last := (Decision{}); ; {
		d, err := a.pass(ctx, name, say)
		switch {
		case err != nil && last.Awaited != AwaitsNothing && ctx.Err() != nil:
			// A request that ctx ended says less than what was awaited before.
			return last.unmet(err)
		case err != nil || d.Awaited == AwaitsNothing:
			return err
		case !a.Wait && (!d.Awaited.soon() || a.Clock.Now().After(deadline)):
			return d.unmet(nil)
		}
		last = d
		say("waiting for %s", d.Waiting)
		select {
		case <-ctx.Done():
			return d.unmet(ctx.Err())
		case <-a.Clock.After(interval):
		}
	}
}

// pass reads the hub once, writes what can be written now, and returns what the
// cluster lacks then.
func (a *Approver) pass(ctx context.Context, name string, say Say) (Decision, error) {
	f, err := a.Facts(ctx, name)
	if err != nil {
		return Decision{}, err
	}
	// After the requests: an agent stores its key before it requests a certificate for it.
	// A newer request of the agent is then never taken for that of another one.
	choice, err := a.choice(ctx)
	if err != nil {
		return Decision{}, err
	}
	if f.Cluster == nil && a.revoked[name] {
		return Decision{}, nil // It was being deleted, and the grant was the last that held it.
	}
	d, err := Decide(f, choice)
	if err != nil {
		return Decision{}, err
	}
	if err := a.show(f); err != nil {
		return Decision{}, err
	}
	a.announceWrites(f, d, say)
	switch a.DryRun {
	case DryRunClient:
		return Decision{}, nil
	case DryRunServer:
		d.Awaited = AwaitsNothing
	case DryRunNone:
	}
	if err := a.write(ctx, f, d); err != nil {
		return d, err
	}
	return a.byHand(ctx, f, d)
}

// Introduce prints what a cluster brought, at most once for each cluster.
func (a *Approver) Introduce(cluster *clusterv1.ManagedCluster) {
	brought := Brought(cluster)
	if !a.first(cluster.Name, brought) {
		return
	}
	for _, line := range brought[:min(most, len(brought))] {
		a.Say("%s: brings %s", cluster.Name, line)
	}
	if len(brought) > most {
		a.Say("%s: brings %d more; see the ManagedCluster", cluster.Name, len(brought)-most)
	}
}

// first reports whether nothing was printed yet of what a cluster brought.
func (a *Approver) first(cluster string, brought []string) bool {
	if a.introduced == nil {
		a.introduced = map[string][]string{}
	}
	_, printed := a.introduced[cluster]
	if !printed {
		a.introduced[cluster] = brought
	}
	return !printed
}

// Introduced returns what Brought described of a cluster before it was accepted, nothing of
// one that was accepted before.
func (a *Approver) Introduced(cluster string) []string { return a.introduced[cluster] }

// announceWrites prints what is about to be written.
func (a *Approver) announceWrites(f Facts, d Decision, say Say) {
	switch {
	case d.Accept != nil && *d.Accept:
		a.Introduce(f.Cluster)
	case a.Choice.Discard && f.Cluster != nil && f.Cluster.Spec.HubAcceptsClient && a.first(f.Name, nil):
		a.Warn("%s: it was accepted before, so that its labels and other settings stay; change its ManagedCluster", f.Name)
	}
	if d.Accept != nil {
		say("setting hubAcceptsClient to %t", *d.Accept)
	}
	for _, req := range d.Deny {
		say("denying request %s", req.Name)
	}
	for _, req := range d.Approve {
		// The administrator keeps this line: it says which key was accepted.
		a.Say("%s: %s", f.Name, req.Describe(a.Clock.Now()))
		say("approving request %s", req.Name)
	}
}

// choice returns what the administrator wants, with the key of the agent that is to
// be accepted.
func (a *Approver) choice(ctx context.Context) (Choice, error) {
	choice := a.Choice
	if a.Own == nil {
		return choice, nil
	}
	var err error
	choice.Own = true
	choice.Fingerprint, err = a.Own(ctx)
	return choice, err
}

// write carries out a decision. It accepts the cluster last: the hub grants the rights
// of an accepted cluster to the agent whose request was approved, and an agent that had
// them before must not regain them for a moment. A certificate is worth nothing without
// acceptance.
func (a *Approver) write(ctx context.Context, f Facts, d Decision) error {
	if d.Change != nil && f.Cluster.Spec.HubAcceptsClient {
		if a.DryRun == DryRunServer {
			d.Accept = new(false) // The cluster stays accepted, so that admission would reject the second write.
		} else if err := a.suspend(ctx, f); err != nil {
			return err
		}
	}
	for _, req := range d.Deny {
		if err := a.settleRequest(ctx, req, certificatesv1.CertificateDenied); err != nil {
			return err
		}
	}
	for _, req := range d.Approve {
		if err := a.settleRequest(ctx, req, certificatesv1.CertificateApproved); err != nil {
			return err
		}
	}
	if d.Accept == nil {
		return nil
	}
	return a.accept(ctx, f, d)
}

// Facts reads all that a decision about a cluster depends on.
func (a *Approver) Facts(ctx context.Context, name string) (Facts, error) {
	f := Facts{Name: name}
	cluster := &clusterv1.ManagedCluster{}
	err := a.Client.Get(ctx, client.ObjectKey{Name: name}, cluster)
	switch {
	case err == nil:
		f.Cluster = cluster
	case !apierrors.IsNotFound(err):
		return f, fmt.Errorf("cluster %s: %w", name, err)
	}
	if f.Requests, err = Requests(ctx, a.Client, name); err != nil {
		return f, err
	}
	return f, a.registration(ctx, &f)
}
