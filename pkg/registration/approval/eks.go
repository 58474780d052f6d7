package approval

import (
	"cmp"
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

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/hubspec"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/grant"
)

// Register is how a cluster is to register from now on. The zero value leaves it as
// it is.
type Register struct {
	// Driver is the registration driver, CSR or AWSIRSA.
	Driver driver.AuthType
	// Managed is the ARN of the cluster, for AWSIRSA; empty for the one that its
	// ManagedCluster names.
	Managed string
}

// EKS is the EKS cluster that a ManagedCluster registers as, or is to register as.
type EKS struct {
	// Pair are the EKS clusters, if there is no Problem.
	Pair identity.Pair
	// Problem is why no hub can grant an identity to it.
	Problem error
	// Holder is another ManagedCluster with the same identifier.
	Holder string
}

// registration adds to the facts how the cluster registers, and what has to change
// for it to register as chosen.
func (a *Approver) registration(ctx context.Context, f *Facts) error {
	if f.Cluster == nil || a.Choice.Deny {
		return nil
	}
	wanted := f.Cluster.DeepCopy()
	choice := a.Choice.Register
	if choice.Driver == driver.CSR || choice.Managed != "" {
		maps.DeleteFunc(wanted.Annotations, func(key, _ string) bool { return registers(key) })
	}
	announces := !names.SameRegistration(wanted.Annotations, nil)
	if announces || choice.Driver == driver.AWSIRSA {
		if err := a.eks(ctx, f, wanted); err != nil {
			return err
		}
	}
	if !names.SameRegistration(wanted.Annotations, f.Cluster.Annotations) {
		f.Change = wanted.Annotations
		if f.Change == nil {
			f.Change = map[string]string{}
		}
	}
	return nil
}

// registers reports whether a registration driver decides by an annotation.
func registers(key string) bool { return slices.Contains(names.RegistrationAnnotations(), key) }

// eks adds as which EKS cluster a ManagedCluster registers, after writing the chosen
// one into wanted.
func (a *Approver) eks(ctx context.Context, f *Facts, wanted *clusterv1.ManagedCluster) error {
	f.EKS = &EKS{}
	spec, csrOnly, err := a.HubSpec(ctx)
	if f.CSROnly = csrOnly; err != nil || csrOnly {
		return err
	}
	hub, err := awsarn.ParseCluster(spec.Cluster)
	if err != nil {
		return fmt.Errorf("the ARN of the hub: %w", err)
	}
	if chosen := a.Choice.Register.Managed; chosen != "" {
		f.EKS.Problem = announce(wanted, hub, chosen)
	}
	if f.EKS.Problem != nil {
		return nil //nolint:nilerr // It is a fact to decide on.
	}
	pair, problem := awsirsa.NewHub(awsirsa.HubConfig{Cluster: hub}).Announced(wanted)
	switch {
	case problem != nil:
		f.EKS.Problem = problem
	case pair == nil:
		f.EKS.Problem = fmt.Errorf("the ManagedCluster %s names no EKS cluster; give its ARN with --managed-cluster-arn", f.Name)
	default:
		f.EKS.Pair = *pair
		f.EKS.Holder, err = a.holder(ctx, f.Name, *pair)
	}
	return err
}

// announce names an EKS cluster in a ManagedCluster, as its agent does.
func announce(cluster *clusterv1.ManagedCluster, hub awsarn.Cluster, arn string) error {
	managed, err := awsarn.ParseCluster(arn)
	if err != nil {
		return fmt.Errorf("--managed-cluster-arn: %w", err)
	}
	pair, err := identity.NewPair(hub, managed)
	if err == nil {
		awsirsa.NewAgent(awsirsa.AgentConfig{Pair: pair}).Decorate(cluster)
	}
	return err
}

// HubSpec returns how the hub registers EKS clusters, with HubARN for its own ARN if
// that is set, and whether the hub grants no AWS identities. A hub whose
// ClusterManager cannot be read may grant them.
func (a *Approver) HubSpec(ctx context.Context) (spec hubspec.Spec, csrOnly bool, err error) {
	var list operatorv1.ClusterManagerList
	err = a.Client.List(ctx, &list)
	if err != nil && !apierrors.IsForbidden(err) && !apimeta.IsNoMatchError(err) {
		return spec, false, fmt.Errorf("the hub's ClusterManager: %w", err)
	}
	csrOnly = len(list.Items) > 0
	for i := range list.Items {
		if s, ok := hubspec.Of(&list.Items[i]); ok {
			spec, csrOnly = s, false
		}
	}
	spec.Cluster = cmp.Or(a.HubARN, spec.Cluster)
	if spec.Cluster == "" && !csrOnly {
		return spec, false, &Error{
			Kind: Blocked, Problem: "the ARN of the hub's EKS cluster is not known here, so the roles that would be trusted cannot be shown",
			Try: "give it with --hub-cluster-arn",
		}
	}
	return spec, csrOnly, nil
}

// holder returns another cluster with the identifier of a pair: one with a grant, or
// one that the hub accepts and will grant it to.
func (a *Approver) holder(ctx context.Context, name string, pair identity.Pair) (string, error) {
	held, err := grant.Holder(ctx, a.Client, names.HubNamespace, driver.AWSIRSA, pair.Identifier())
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
	granter := awsirsa.NewHub(awsirsa.HubConfig{Cluster: pair.Hub})
	for i := range others.Items {
		other := &others.Items[i]
		if other.Name == name || !other.Spec.HubAcceptsClient {
			continue
		}
		if has, err := granter.Announced(other); err == nil && has != nil && has.Identifier() == pair.Identifier() {
			return other.Name, nil
		}
	}
	return "", nil
}

// Describe returns what the hub trusts once the cluster is accepted, a line each.
// The name of a role fits on a line next to the account, its ARN does not.
func (e *EKS) Describe() []string {
	return []string{
		"EKS cluster " + e.Pair.Managed.String(),
		"AWS account " + e.Pair.Managed.Account,
		"trusted role " + e.Pair.ManagedRole().Name,
		"hub role " + e.Pair.HubRole().Name,
	}
}

// trusts reports whether an EKS cluster can be trusted by the hub.
func (f Facts) trusts() bool {
	return f.EKS != nil && !f.CSROnly && f.EKS.Problem == nil && f.EKS.Holder == ""
}

// show prints once what the hub will trust. What the administrator has seen must not
// change afterwards.
func (a *Approver) show(f Facts) error {
	if !f.trusts() {
		return nil
	}
	now := f.EKS.Pair.Managed.String()
	switch seen, shown := a.shown[f.Name]; {
	case !shown:
	case seen != now:
		return &Error{
			Kind: Blocked, Problem: fmt.Sprintf("ManagedCluster %s was the EKS cluster %s and now is %s; it changed while this command ran", f.Name, seen, now),
			Try: "look at both, then run the command again",
		}
	default:
		return nil
	}
	if a.shown == nil {
		a.shown = map[string]string{}
	}
	a.shown[f.Name] = now
	for _, line := range f.EKS.Describe() {
		a.Say("%s: %s", f.Name, line)
	}
	return nil
}

// PendingEKS returns the clusters that register with AWS and were neither accepted
// nor denied yet, and shows the EKS clusters that they announce. A cluster that
// needs a choice is left out with a warning.
func (a *Approver) PendingEKS(ctx context.Context) ([]string, error) {
	var list clusterv1.ManagedClusterList
	if err := a.Client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("clusters: %w", err)
	}
	var waiting []string
	for i := range list.Items {
		cluster := &list.Items[i]
		decided := cluster.Spec.HubAcceptsClient ||
			apimeta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted) != nil
		if decided || !cluster.DeletionTimestamp.IsZero() || names.SameRegistration(cluster.Annotations, nil) {
			continue
		}
		f := Facts{Name: cluster.Name, Cluster: cluster}
		err := a.registration(ctx, &f)
		if err == nil {
			_, err = decideEKS(f, a.Choice)
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

// decideEKS is Decide for a cluster that registers as an EKS cluster, or is to. Its
// identity is its ARN; the hub signs nothing.
func decideEKS(f Facts, c Choice) (Decision, error) {
	e := f.EKS
	switch {
	case f.CSROnly:
		return Decision{}, &Error{
			Kind: Blocked, Problem: fmt.Sprintf("cluster %s requests an AWS identity, which this hub does not grant: it would be accepted and never have a credential", f.Name),
			Try: "run join on the managed cluster again, with --registration-auth csr",
		}
	case e.Problem != nil:
		return Decision{}, &Error{Kind: Blocked, Problem: fmt.Sprintf("cluster %s cannot register with AWS; nothing was changed: %v", f.Name, e.Problem)}
	case e.Holder != "":
		return Decision{}, &Error{
			Kind: Blocked,
			Problem: fmt.Sprintf("cluster %s has the identifier %s of cluster %s; the hub grants one identity to one cluster, and nothing was changed",
				f.Name, e.Pair.Identifier(), e.Holder),
			Try: fmt.Sprintf("unjoin cluster %s first, or join cluster %s as the EKS cluster that it is", e.Holder, f.Name),
		}
	}
	pending := slices.DeleteFunc(eligible(f, c), func(r Request) bool { return r.State != Pending })
	if c.Register.Driver == "" && (len(pending) > 0 || c.Fingerprint != "") {
		return Decision{}, &Error{
			Kind: Blocked, Problem: fmt.Sprintf("cluster %s registers as %s, and %s; nothing was changed", f.Name, e.Pair.Managed, conflictOf(pending)),
			Try: "choose the certificate with --registration-auth csr, or the EKS cluster with --registration-auth awsirsa",
		}
	}
	d := Decision{Deny: pending, Change: f.Change}
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
	switch {
	case !decided && grant.Granted(f.Cluster, f.EKS.Pair.Identifier()):
		return AwaitsNothing, ""
	case decided || reported == nil || reported.Status == metav1.ConditionTrue:
		return AwaitsReport, "the hub controller to report on the AWS identity"
	}
	return AwaitsGrant, "the hub controller to grant the AWS identity: " + reported.Message
}
