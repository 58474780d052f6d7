package acceptance

import (
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Choice is what the user wants of the requests.
type Choice struct {
	// Fingerprint names the key to take, or enough of it; its rivals are denied.
	Fingerprint string
	// Requesters are approved as well, besides the identities made for joining.
	Requesters []string
	// SkipCheck approves whoever asks.
	SkipCheck bool
	// Deny refuses instead of accepting.
	Deny bool
	// Register is how the cluster is to register.
	Register Register
	// Own says that Fingerprint is of the very agent that is to be accepted, and
	// empty while it asks for nothing, as one with a credential does. Before its
	// request is there, whoever asks is another.
	Own bool
}

// Facts is all that a decision depends on.
type Facts struct {
	// Name is the name that the command was given.
	Name string
	// Cluster is nil while there is no ManagedCluster.
	Cluster *clusterv1.ManagedCluster
	// Requests are those for the cluster, by whomever.
	Requests []fleet.Request
	// EKS is what the cluster registers as if it does so with AWS, or is to.
	EKS *EKS
	// Change are the annotations of a cluster that is to register otherwise than it
	// does; nil if it is not.
	Change map[string]string
	// CSROnly says that the hub gives no AWS identities.
	CSROnly bool
}

// Missing is what a cluster lacks that only another can give.
type Missing int

// What can be missing.
const (
	// Nothing is missing: the cluster is as desired.
	Nothing Missing = iota
	// Registration is a ManagedCluster, which its agent creates.
	Registration
	// Request is a CertificateSigningRequest that may be approved.
	Request
	// Certificate is what the hub's signer issues for an approved request.
	Certificate
	// Grant is the identity of a cluster that registers with AWS. The hub reports
	// why it has none.
	Grant
	// Report is what the hub says about such an identity.
	Report
	// Revocation is that the hub lets a denied cluster go.
	Revocation
)

// Verdict is what is to be done now.
type Verdict struct {
	// Approve and Deny are requests to be settled.
	Approve []fleet.Request
	Deny    []fleet.Request
	// Accept is what hubAcceptsClient shall be; nil leaves it.
	Accept *bool
	// Change are the annotations that the cluster is to be accepted with; nil leaves
	// them. A cluster that the hub accepts is denied first.
	Change map[string]string
	// Missing is what is missing when the approvals are made.
	Missing Missing
	// Waiting says it; empty when nothing is missing.
	Waiting string
}

// claim is one requester with one key.
type claim struct{ requester, fingerprint string }

// connected stands for the key of an agent that works already and whose
// request is gone.
const connected = "(the agent that is connected now)"

// Decide judges the facts. It is pure; an error is final and means that
// nothing may be done.
func Decide(f Facts, c Choice) (Verdict, error) {
	f.Requests = c.relevant(f.Requests)
	switch {
	case c.Deny:
		return decideDenial(f, c)
	// What an agent once announced is nothing to a hub without AWS identities.
	case f.EKS != nil && (!f.CSROnly || len(f.Requests) == 0):
		return decideEKS(f, c)
	case c.Fingerprint == "" && f.Change == nil && waits(f):
		return Verdict{Accept: new(true)}, nil
	}
	requests := eligible(f, c)
	claims := claimsOf(f, requests)
	if f.Change != nil || !settled(f, requests) {
		var err error
		if claims, err = choose(f, claims, c); err != nil {
			return Verdict{}, err
		}
	}
	if f.Cluster == nil {
		return Verdict{Missing: Registration, Waiting: "the cluster to register; does its agent run and reach this hub?"}, nil
	}
	return settle(requests, claims).finish(f, c, claims), nil
}

// relevant returns the requests to judge: none while there are strangers' only.
func (c Choice) relevant(requests []fleet.Request) []fleet.Request {
	own := func(r fleet.Request) bool { return matches(r.Fingerprint, c.Fingerprint) }
	if c.Own && !slices.ContainsFunc(requests, own) {
		return nil
	}
	return requests
}

// settle approves the requests of those who were chosen that wait, and denies
// the others.
func settle(requests []fleet.Request, chosen []claim) Verdict {
	var v Verdict
	for _, r := range requests {
		switch {
		case r.State != fleet.Pending:
		case slices.Contains(chosen, claimOf(r)):
			v.Approve = append(v.Approve, r)
		default:
			v.Deny = append(v.Deny, r)
		}
	}
	return v
}

// waits reports whether a cluster that was denied waits to be accepted again: its
// agent holds the credential that it had, so it asks for none. One that left
// has none any more.
func waits(f Facts) bool {
	if f.Cluster == nil || f.Cluster.Spec.HubAcceptsClient || f.Cluster.Annotations[names.AnnotationLeft] != "" {
		return false
	}
	conditions := f.Cluster.Status.Conditions
	accepted := apimeta.FindStatusCondition(conditions, clusterv1.ManagedClusterConditionHubAccepted)
	return accepted != nil && accepted.Reason == names.ReasonHubDenied &&
		apimeta.IsStatusConditionTrue(conditions, clusterv1.ManagedClusterConditionJoined) &&
		!slices.ContainsFunc(f.Requests, func(r fleet.Request) bool { return r.State == fleet.Pending || r.State == fleet.Approved })
}

// settled reports whether nothing is left to decide: no request waits, and the
// cluster is accepted or gone. Certificates of different keys are the past then.
func settled(f Facts, requests []fleet.Request) bool {
	return (f.Cluster == nil || f.Cluster.Spec.HubAcceptsClient) &&
		!slices.ContainsFunc(requests, func(r fleet.Request) bool { return r.State == fleet.Pending })
}

// issuedTo reports whether one of the claims has a credential.
func issuedTo(f Facts, claims []claim) bool {
	// An agent that works by another driver holds no certificate.
	if len(claims) == 0 {
		return f.Change == nil && joined(f.Cluster)
	}
	return slices.ContainsFunc(claims, func(c claim) bool {
		return f.Change == nil && c.requester == connected || slices.ContainsFunc(f.Requests, func(r fleet.Request) bool {
			return claimOf(r) == c && r.State == fleet.Issued
		})
	})
}

// finish says whether the cluster is to be accepted and what is missing then.
func (v Verdict) finish(f Facts, c Choice, claims []claim) Verdict {
	issued := issuedTo(f, claims)
	switch {
	case len(v.Approve) > 0, len(claims) > 0 && !issued:
		// Also when an older request of the same key was issued: the agent
		// asked again because it did not get hold of that certificate.
		v.Missing, v.Waiting = Certificate, "the hub to issue the certificate"
	case issued:
	default:
		v.Missing, v.Waiting = Request, missingRequest(f, c)
	}
	if (len(claims) > 0 || issued || c.SkipCheck) && (!f.Cluster.Spec.HubAcceptsClient || f.Change != nil) {
		v.Accept, v.Change = new(true), f.Change
	}
	return v
}

// eligible returns the requests that may be approved as far as they are
// concerned.
func eligible(f Facts, c Choice) []fleet.Request {
	var out []fleet.Request
	for _, r := range f.Requests {
		known := r.Bootstrap || c.SkipCheck || slices.Contains(c.Requesters, r.Requester)
		open := r.State != fleet.Denied && r.State != fleet.Failed
		// A cluster whose driver changes is denied by this very command.
		if known && open && r.Refusal == "" && !r.Renewal && (f.Change != nil || !outlived(f.Cluster, r)) {
			out = append(out, r)
		}
	}
	return out
}

// outlived reports whether a certificate was issued before the cluster was
// denied. It is the past of a cluster that left, not a rival of one that comes.
func outlived(cluster *clusterv1.ManagedCluster, r fleet.Request) bool {
	if cluster == nil || cluster.Spec.HubAcceptsClient || r.State != fleet.Issued {
		return false
	}
	accepted := apimeta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted)
	return accepted != nil && accepted.Reason == names.ReasonHubDenied && r.Created.Before(accepted.LastTransitionTime.Time)
}

func claimOf(r fleet.Request) claim { return claim{r.Requester, r.Fingerprint} }

// claimsOf returns who claims the name. The agent that works already claims it
// too, unless its own request is still there.
func claimsOf(f Facts, requests []fleet.Request) []claim {
	var claims []claim
	issued, pending := false, false
	for _, r := range requests {
		if !slices.Contains(claims, claimOf(r)) {
			claims = append(claims, claimOf(r))
		}
		issued = issued || r.State == fleet.Issued
		pending = pending || r.State == fleet.Pending
	}
	if pending && !issued && alive(f.Cluster) {
		claims = append(claims, claim{requester: connected})
	}
	return claims
}

// choose returns the only claim, the one that the user named, or none. Two
// claims without a choice are an error.
func choose(f Facts, claims []claim, c Choice) ([]claim, error) {
	if c.Fingerprint != "" {
		chosen := slices.DeleteFunc(slices.Clone(claims), func(x claim) bool { return !matches(x.fingerprint, c.Fingerprint) })
		switch {
		case len(claims) == 0:
			return nil, nil
		case len(chosen) == 0:
			return nil, cli.NotFoundf("compare with the fingerprint that join printed on the managed cluster",
				"no request for cluster %s has the key %s", f.Name, c.Fingerprint)
		case len(chosen) > 1:
			return nil, cli.Usagef("the fingerprint %s fits more than one request of cluster %s; give more of it", c.Fingerprint, f.Name)
		}
		return chosen, nil
	}
	if len(claims) > 1 {
		return nil, cli.Blockedf(
			"compare with the fingerprint that join printed on the managed cluster, then accept that one with --fingerprint; the others are denied",
			"%d different requesters or keys claim the name %s; nothing was accepted", len(claims), f.Name)
	}
	return claims, nil
}

// shortest is how much of a fingerprint has to be given.
const shortest = 8

func matches(fingerprint, given string) bool {
	const prefix = "SHA256:"
	given = strings.TrimPrefix(given, prefix)
	return len(given) >= shortest && strings.HasPrefix(strings.TrimPrefix(fingerprint, prefix), given)
}

// missingRequest says why there is nothing to approve.
func missingRequest(f Facts, c Choice) string {
	var reasons []string
	for _, r := range f.Requests {
		switch {
		case r.Renewal:
		case r.Refusal != "":
			reasons = append(reasons, fmt.Sprintf("request %s can never be approved: %s", r.Name, r.Refusal))
		case r.State == fleet.Denied, r.State == fleet.Failed:
			reasons = append(reasons, fmt.Sprintf("request %s is %s", r.Name, strings.ToLower(string(r.State))))
		case !r.Bootstrap && !c.SkipCheck:
			reasons = append(reasons, fmt.Sprintf("request %s is from %s, who is not made for joining (--requesters)", r.Name, r.Requester))
		}
	}
	if len(reasons) == 0 {
		return "the cluster to ask for a certificate"
	}
	return strings.Join(reasons, "; ")
}

// decideDenial denies what waits. Unless one request was chosen, the cluster
// itself is denied as well.
func decideDenial(f Facts, c Choice) (Verdict, error) {
	var v Verdict
	for _, r := range f.Requests {
		if r.State == fleet.Pending && (c.Fingerprint == "" || matches(r.Fingerprint, c.Fingerprint)) {
			v.Deny = append(v.Deny, r)
		}
	}
	if f.Cluster == nil && len(f.Requests) == 0 {
		return v, cli.NotFoundf("", "there is no cluster %s and no request for it", f.Name)
	}
	if c.Fingerprint == "" && f.Cluster != nil && f.Cluster.Spec.HubAcceptsClient {
		v.Accept = new(false)
	}
	return v, nil
}

func joined(cluster *clusterv1.ManagedCluster) bool {
	return cluster.Spec.HubAcceptsClient && apimeta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionJoined)
}

// alive reports whether an agent renews the cluster's lease.
func alive(cluster *clusterv1.ManagedCluster) bool {
	return cluster != nil && joined(cluster) &&
		!apimeta.IsStatusConditionPresentAndEqual(cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable, "Unknown")
}
