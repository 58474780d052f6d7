package approval

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/grant"
)

// Register is how a cluster is to register from now on. The zero value leaves it as
// it is.
type Register struct {
	// Driver is the registration driver.
	Driver driver.AuthType
	// ID is the identity of the cluster, for a driver that identifies clusters; empty for
	// the one that its ManagedCluster names.
	ID string
}

// Identity is the identity that a ManagedCluster registers with, or is to register
// with, through a driver that identifies it by annotations.
type Identity struct {
	// Driver is that driver.
	Driver driver.Identifier
	// Identified is the identity, if there is no Problem.
	Identified driver.Identified
	// Problem is why no hub can grant it.
	Problem error
	// Holder is another ManagedCluster with the same key.
	Holder string
	// Ungranted is set if the hub does not have the driver.
	Ungranted bool
}

// registration adds to the facts how the cluster registers, and what has to change
// for it to register as chosen.
func (a *Approver) registration(ctx context.Context, f *Facts) error {
	if f.Cluster == nil || a.Choice.Deny {
		return nil
	}
	wanted := f.Cluster.DeepCopy()
	choice := a.Choice.Register
	chosen := a.Drivers.Identifier(choice.Driver)
	if choice.Driver != "" && chosen == nil || choice.ID != "" {
		maps.DeleteFunc(wanted.Annotations, func(key, _ string) bool { return a.registers(key) })
	}
	if chosen == nil {
		chosen = a.Drivers.Announced(wanted)
	}
	if chosen != nil {
		if err := a.identify(ctx, f, wanted, chosen); err != nil {
			return err
		}
	}
	if !a.same(wanted, f.Cluster) {
		f.Change = wanted.Annotations
		if f.Change == nil {
			f.Change = map[string]string{}
		}
	}
	return nil
}

// registers reports whether a registration driver decides by an annotation.
func (a *Approver) registers(key string) bool { return slices.Contains(a.Drivers.Annotations(), key) }

// same reports whether two ManagedClusters are the same to every registration driver.
func (a *Approver) same(x, y *clusterv1.ManagedCluster) bool {
	return names.SameValues(x.Annotations, y.Annotations, a.Drivers.Annotations())
}

// identify adds the identity that a ManagedCluster registers with, after writing the
// chosen one into wanted.
func (a *Approver) identify(ctx context.Context, f *Facts, wanted *clusterv1.ManagedCluster, by driver.Identifier) error {
	f.Identity = &Identity{Driver: by}
	settings, enabled, err := a.HubSettings(ctx, by)
	if f.Identity.Ungranted = !enabled; err != nil || !enabled {
		return err
	}
	if chosen := a.Choice.Register.ID; chosen != "" {
		if f.Identity.Problem = by.Announce(wanted, chosen, settings); f.Identity.Problem != nil {
			return nil //nolint:nilerr // It is a fact to decide on.
		}
	}
	found, problem := by.Identify(wanted, settings)
	switch {
	case problem != nil:
		f.Identity.Problem = problem
	case found == nil:
		f.Identity.Problem = fmt.Errorf("the ManagedCluster %s names no identity for %s; give it with --%s", f.Name, by.Type(), by.Words().IDFlag)
	default:
		f.Identity.Identified = *found
		f.Identity.Holder, err = a.holder(ctx, f.Name, by, found.Key, settings)
	}
	return err
}

// HubSettings returns how the hub registers clusters by a driver, with what identifies the
// hub by the administrator's word, and whether it has the driver. A hub whose
// ClusterManager cannot be read may have it.
func (a *Approver) HubSettings(ctx context.Context, by driver.Identifier) (settings driver.HubSettings, enabled bool, err error) {
	var list operatorv1.ClusterManagerList
	err = a.Client.List(ctx, &list)
	if err != nil && !apierrors.IsForbidden(err) && !apimeta.IsNoMatchError(err) {
		return settings, true, fmt.Errorf("the hub's ClusterManager: %w", err)
	}
	enabled = len(list.Items) == 0
	for i := range list.Items {
		for _, e := range a.Drivers.Of(&list.Items[i]) {
			if e.Type() == by.Type() {
				settings, enabled = e.Settings, true
			}
		}
	}
	settings = by.Retain(a.Hub, settings)
	if grants := by.Grants(); enabled && grants.Hub(settings) == "" {
		return settings, true, &finding.Error{
			Kind: finding.Blocked, Problem: by.Words().Hub + " is not known here, so what would be trusted cannot be shown",
			Try: "give it with --" + grants.HubFlag,
		}
	}
	return settings, enabled, nil
}

// holder returns another cluster with the same key: one with a grant, or one that the hub
// accepts and will grant it to.
func (a *Approver) holder(ctx context.Context, name string, by driver.Identifier, key string, settings driver.HubSettings) (string, error) {
	held, err := grant.Holder(ctx, a.Client, names.HubNamespace, by.Type(), key)
	if err != nil && !apierrors.IsForbidden(err) {
		return "", err
	}
	if held != "" && held != name {
		return held, nil
	}
	var others clusterv1.ManagedClusterList
	if err := a.Client.List(ctx, &others); err != nil {
		return "", fmt.Errorf("clusters: %w", err)
	}
	for i := range others.Items {
		other := &others.Items[i]
		if other.Name == name || !other.Spec.HubAcceptsClient {
			continue
		}
		if has, err := by.Identify(other, settings); err == nil && has != nil && has.Key == key {
			return other.Name, nil
		}
	}
	return "", nil
}

// trusts reports whether the hub can grant the cluster its identity.
func (f Facts) trusts() bool {
	return f.Identity != nil && !f.Identity.Ungranted && f.Identity.Problem == nil && f.Identity.Holder == ""
}

// show prints once what the hub will trust. What the administrator has seen must not
// change afterwards.
func (a *Approver) show(f Facts) error {
	if !f.trusts() {
		return nil
	}
	now := f.Identity.Identified.ID
	switch seen, shown := a.shown[f.Name]; {
	case !shown:
	case seen != now:
		return &finding.Error{
			Kind: finding.Blocked, Problem: fmt.Sprintf("ManagedCluster %s was %s and now is %s; it changed while this command ran", f.Name, seen, now),
			Try: "look at both, then run the command again",
		}
	default:
		return nil
	}
	if a.shown == nil {
		a.shown = map[string]string{}
	}
	a.shown[f.Name] = now
	for _, line := range f.Identity.Identified.Trusted {
		a.Say("%s: %s", f.Name, line)
	}
	return nil
}

// PendingIdentities returns the clusters that register by an identity of theirs and were
// neither accepted nor denied yet, and shows what the hub will trust. A cluster that needs
// a choice is left out with a warning.
func (a *Approver) PendingIdentities(ctx context.Context) ([]string, error) {
	var list clusterv1.ManagedClusterList
	if err := a.Client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("clusters: %w", err)
	}
	var waiting []string
	for i := range list.Items {
		cluster := &list.Items[i]
		decided := cluster.Spec.HubAcceptsClient ||
			apimeta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted) != nil
		if decided || !cluster.DeletionTimestamp.IsZero() || a.Drivers.Announced(cluster) == nil {
			continue
		}
		f := Facts{Name: cluster.Name, Cluster: cluster}
		err := a.registration(ctx, &f)
		if err == nil {
			_, err = decideIdentity(f, a.Choice)
		}
		if err != nil {
			a.Warn("%s is left out: %v", cluster.Name, err)
			continue
		}
		if err := a.show(f); err != nil {
			return nil, err
		}
		waiting = append(waiting, cluster.Name)
	}
	return waiting, nil
}

// Changes reports whether a cluster that the hub accepts is to register in another
// way, and shows which.
func (a *Approver) Changes(ctx context.Context, name string) (bool, error) {
	f, err := a.Facts(ctx, name)
	if err != nil || f.Cluster == nil || f.Change == nil || !f.Cluster.Spec.HubAcceptsClient {
		return false, err
	}
	if _, err := Decide(f, a.Choice); err != nil {
		return false, err
	}
	return true, a.show(f)
}

// decideIdentity is Decide for a cluster that registers by an identity, or is to. The hub
// signs nothing for it.
func decideIdentity(f Facts, c Choice) (Decision, error) {
	e := f.Identity
	word := e.Driver.Words().Identity
	switch {
	case e.Ungranted:
		return Decision{}, &finding.Error{
			Kind: finding.Blocked, Problem: fmt.Sprintf("cluster %s requests its %s, which this hub does not grant: it would be accepted and never have a credential", f.Name, word),
			Try: "run join on the managed cluster again, with another --registration-auth",
		}
	case e.Problem != nil:
		return Decision{}, &finding.Error{Kind: finding.Blocked, Problem: fmt.Sprintf("cluster %s cannot register by %s; nothing was changed: %v", f.Name, e.Driver.Type(), e.Problem)}
	case e.Holder != "":
		return Decision{}, &finding.Error{
			Kind: finding.Blocked,
			Problem: fmt.Sprintf("cluster %s has the identifier %s of cluster %s; the hub grants one identity to one cluster, and nothing was changed",
				f.Name, e.Identified.Key, e.Holder),
			Try: fmt.Sprintf("unjoin cluster %s first, or join cluster %s as the one that it is", e.Holder, f.Name),
		}
	}
	pending := slices.DeleteFunc(eligible(f, c), func(r Request) bool { return r.State != Pending })
	if c.Register.Driver == "" && (len(pending) > 0 || c.Fingerprint != "") {
		return Decision{}, &finding.Error{
			Kind: finding.Blocked, Problem: fmt.Sprintf("cluster %s registers as %s, and %s; nothing was changed", f.Name, e.Identified.ID, conflictOf(pending)),
			Try: fmt.Sprintf("choose the certificate with --registration-auth %s, or the %s with --registration-auth %s", driver.CSR, word, e.Driver.Type()),
		}
	}
	d := Decision{Deny: pending, Change: f.Change, By: e.Driver}
	if !f.Cluster.Spec.HubAcceptsClient || f.Change != nil {
		d.Accept = new(true)
	}
	d.Awaited, d.Waiting = missingGrant(f, d.Accept != nil)
	return d, nil
}

// conflictOf says what asks for a certificate of a cluster that registers without one.
func conflictOf(pending []Request) string {
	if len(pending) == 0 {
		return "--fingerprint chooses the key of a certificate"
	}
	keys := make([]string, len(pending))
	for i, r := range pending {
		keys[i] = r.Fingerprint
	}
	return "a certificate is requested for it with the key " + strings.Join(keys, ", ")
}

// missingGrant returns what the hub has not granted yet, by its own report. A report
// about an earlier identity of the cluster does not count.
func missingGrant(f Facts, decided bool) (Awaited, string) {
	reported := apimeta.FindStatusCondition(f.Cluster.Status.Conditions, names.ConditionRegistrationGranted)
	word := f.Identity.Driver.Words().Identity
	switch {
	case !decided && grant.Granted(f.Cluster, f.Identity.Identified.Key):
		return AwaitsNothing, ""
	case decided || reported == nil || reported.Status == metav1.ConditionTrue:
		return AwaitsReport, "the hub controller to report on the " + word
	}
	return AwaitsGrant, "the hub controller to grant the " + word + ": " + reported.Message
}
