package approval

import (
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// Choice is what the administrator wants.
type Choice struct {
	// Fingerprint names the key to accept, or enough of it; conflicting requests
	// are denied.
	Fingerprint string
	// Requesters are users whose requests are approved as well, in addition to the
	// bootstrap identities.
	Requesters []string
	// SkipCheck approves a request regardless of its requester.
	SkipCheck bool
	// Discard accepts the cluster without what Brought describes. One that is accepted
	// already keeps it, with a warning.
	Discard bool
	// Deny denies the cluster instead.
	Deny bool
	// Register is how the cluster is to register.
	Register Register
	// Own is set if Fingerprint is the key of the very agent that is to be accepted.
	// It is empty while that agent has no request, as one with a credential has
	// none. Until its request exists, all requests are from others.
	Own bool
}

// Facts is all that a decision depends on.
type Facts struct {
	// Name is the name of the cluster.
	Name string
	// Cluster is nil while there is no ManagedCluster.
	Cluster *clusterv1.ManagedCluster
	// Requests are the requests for the cluster, from all requesters.
	Requests []Request
	// Identity is the identity that the cluster registers with, or is to register with;
	// nil if it registers with a certificate.
	Identity *Identity
	// Change are the annotations of a cluster that is to register in another way;
	// nil if it is not.
	Change map[string]string
}

// Awaited is a missing part of a cluster that the Approver cannot provide.
type Awaited int

// What an Approver waits for.
const (
	// AwaitsNothing: the cluster is in the chosen state.
	AwaitsNothing Awaited = iota
	// AwaitsRegistration: the agent has to create the ManagedCluster.
	AwaitsRegistration
	// AwaitsRequest: the agent has to create a CertificateSigningRequest that may be
	// approved.
	AwaitsRequest
	// AwaitsCertificate: the signer of the hub has to issue the certificate.
	AwaitsCertificate
	// AwaitsGrant: the hub controller has to grant the identity, and reports why it has
	// not.
	AwaitsGrant
	// AwaitsReport: the hub controller has to report on the identity.
	AwaitsReport
	// AwaitsRevocation: the hub controller has to see that a denied cluster has no
	// grant left.
	AwaitsRevocation
)

// soon reports whether the hub usually provides the missing part within seconds.
func (a Awaited) soon() bool {
	return a == AwaitsCertificate || a == AwaitsGrant || a == AwaitsReport || a == AwaitsRevocation
}

// Decision is a set of writes to make now.
type Decision struct {
	// Approve and Deny are requests.
	Approve []Request
	Deny    []Request
	// Accept is the value for hubAcceptsClient; nil leaves it.
	Accept *bool
	// Change are the annotations to accept the cluster with; nil leaves them. A
	// cluster that the hub accepts is denied first.
	Change map[string]string
	// Awaited is the part that the cluster still lacks after these writes.
	Awaited Awaited
	// Waiting describes Awaited for the user; empty if nothing is awaited.
	Waiting string
	// By is the driver that identifies the cluster; nil if it registers with a certificate.
	By driver.Identifier
}

// unmet returns the error about what is still awaited.
func (d Decision) unmet(cause error) error {
	return &AwaitError{Awaited: d.Awaited, Waiting: d.Waiting, By: d.By, Cause: cause}
}

// candidate is one requester with one key. Two of them for one cluster conflict.
type candidate struct{ requester, fingerprint string }

// connected stands for the key of an agent that is connected and whose request is
// gone.
const connected = "(the agent that is connected now)"

// Decide returns what is to be done about a cluster. It is pure. An *finding.Error means
// that nothing may be written.
func Decide(f Facts, c Choice) (Decision, error) {
	f.Requests = c.relevant(f.Requests)
	switch {
	case c.Deny:
		return decideDenial(f, c)
	// A hub without the driver ignores what an agent once announced.
	case f.Identity != nil && (!f.Identity.Ungranted || len(f.Requests) == 0):
		return decideIdentity(f, c)
	case c.Fingerprint == "" && f.Change == nil && deniedWithCredential(f):
		return Decision{Accept: new(true)}, nil
	}
	requests := eligible(f, c)
	candidates := candidatesOf(f, requests)
	if f.Change != nil || !settled(f, requests) {
		var err error
		if candidates, err = choose(f, candidates, c); err != nil {
			return Decision{}, err
		}
	}
	if f.Cluster == nil {
		return Decision{Awaited: AwaitsRegistration, Waiting: "the cluster to register; does its agent run and reach this hub?"}, nil
	}
	return settle(requests, candidates).finish(f, c, candidates), nil
}

// relevant returns the requests to decide on: none while all are from others than
// the agent that is to be accepted.
func (c Choice) relevant(requests []Request) []Request {
	if c.Own && !c.requested(requests) {
		return nil
	}
	return requests
}

// requested reports whether one of the requests has the chosen key.
func (c Choice) requested(requests []Request) bool {
	return slices.ContainsFunc(requests, func(r Request) bool { return matches(r.Fingerprint, c.Fingerprint) })
}

// unrequested reports whether the agent that is to be accepted has a key and no request for
// it yet: an agent stores its key before it makes the request. That the cluster has joined is
// then about an earlier credential, which the agent may have given up.
func (c Choice) unrequested(requests []Request) bool {
	return c.Own && c.Fingerprint != "" && !c.requested(requests)
}

// settle approves the pending requests of the chosen candidates, and denies the
// other pending ones.
func settle(requests []Request, chosen []candidate) Decision {
	var d Decision
	for _, r := range requests {
		switch {
		case r.State != Pending:
		case slices.Contains(chosen, candidateOf(r)):
			d.Approve = append(d.Approve, r)
		default:
			d.Deny = append(d.Deny, r)
		}
	}
	return d
}

// deniedWithCredential reports whether a cluster was denied whose agent still has
// its credential and so requests none. An agent that was detached has none.
func deniedWithCredential(f Facts) bool {
	if f.Cluster == nil || f.Cluster.Spec.HubAcceptsClient || f.Cluster.Annotations[names.AnnotationLeft] != "" {
		return false
	}
	conditions := f.Cluster.Status.Conditions
	accepted := apimeta.FindStatusCondition(conditions, clusterv1.ManagedClusterConditionHubAccepted)
	return accepted != nil && accepted.Reason == names.ReasonHubDenied &&
		apimeta.IsStatusConditionTrue(conditions, clusterv1.ManagedClusterConditionJoined) &&
		!slices.ContainsFunc(f.Requests, func(r Request) bool { return r.State == Pending || r.State == Approved })
}

// settled reports whether nothing is left to decide: no request is pending, and the
// cluster is accepted or does not exist. Certificates of different keys are history
// then.
func settled(f Facts, requests []Request) bool {
	return (f.Cluster == nil || f.Cluster.Spec.HubAcceptsClient) &&
		!slices.ContainsFunc(requests, func(r Request) bool { return r.State == Pending })
}

// issuedTo reports whether one of the candidates has a credential.
func issuedTo(f Facts, candidates []candidate) bool {
	// An agent of another driver has no certificate.
	if len(candidates) == 0 {
		return f.Change == nil && joined(f.Cluster)
	}
	return slices.ContainsFunc(candidates, func(c candidate) bool {
		return f.Change == nil && c.requester == connected || slices.ContainsFunc(f.Requests, func(r Request) bool {
			return candidateOf(r) == c && r.State == Issued
		})
	})
}

// finish adds whether the cluster is to be accepted and what it lacks then.
func (d Decision) finish(f Facts, c Choice, candidates []candidate) Decision {
	issued := issuedTo(f, candidates) && !c.unrequested(f.Requests)
	switch {
	case len(d.Approve) > 0, len(candidates) > 0 && !issued:
		// Also if an older request with the same key was issued: the agent
		// requests another certificate because it could not store that one.
		d.Awaited, d.Waiting = AwaitsCertificate, "the hub to issue the certificate"
	case issued:
	default:
		d.Awaited, d.Waiting = AwaitsRequest, missingRequest(f, c)
	}
	if (len(candidates) > 0 || issued || c.SkipCheck) && (!f.Cluster.Spec.HubAcceptsClient || f.Change != nil) {
		d.Accept, d.Change = new(true), f.Change
	}
	return d
}

// eligible returns the requests that may be approved, other requests aside.
func eligible(f Facts, c Choice) []Request {
	var out []Request
	for _, r := range f.Requests {
		known := r.Bootstrap || c.SkipCheck || slices.Contains(c.Requesters, r.Requester)
		open := r.State != Denied && r.State != Failed
		// Changing the driver of a cluster denies it first.
		if known && open && r.Rejection == "" && !r.Renewal && (f.Change != nil || !beforeDenial(f.Cluster, r)) {
			out = append(out, r)
		}
	}
	return out
}

// beforeDenial reports whether a certificate was issued before the cluster was
// denied. It does not conflict with the request of a cluster that registers now.
func beforeDenial(cluster *clusterv1.ManagedCluster, r Request) bool {
	if cluster == nil || cluster.Spec.HubAcceptsClient || r.State != Issued {
		return false
	}
	accepted := apimeta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted)
	return accepted != nil && accepted.Reason == names.ReasonHubDenied && r.Created.Before(accepted.LastTransitionTime.Time)
}

func candidateOf(r Request) candidate { return candidate{r.Requester, r.Fingerprint} }

// candidatesOf returns who requests the name. An agent that is connected is one of
// them, unless its own request still exists.
func candidatesOf(f Facts, requests []Request) []candidate {
	var candidates []candidate
	issued, pending := false, false
	for _, r := range requests {
		if !slices.Contains(candidates, candidateOf(r)) {
			candidates = append(candidates, candidateOf(r))
		}
		issued = issued || r.State == Issued
		pending = pending || r.State == Pending
	}
	if pending && !issued && alive(f.Cluster) {
		candidates = append(candidates, candidate{requester: connected})
	}
	return candidates
}

// choose returns the only candidate, the one that the administrator named, or none.
// Two candidates without a choice are an error.
func choose(f Facts, candidates []candidate, c Choice) ([]candidate, error) {
	if c.Fingerprint != "" {
		chosen := slices.DeleteFunc(slices.Clone(candidates), func(x candidate) bool { return !matches(x.fingerprint, c.Fingerprint) })
		switch {
		case len(candidates) == 0:
			return nil, nil
		case len(chosen) == 0:
			return nil, &finding.Error{
				Kind: finding.NotFound, Problem: fmt.Sprintf("no request for cluster %s has the key %s", f.Name, c.Fingerprint),
				Try: "compare with the fingerprint that join printed on the managed cluster",
			}
		case len(chosen) > 1:
			return nil, &finding.Error{Kind: finding.Invalid, Problem: fmt.Sprintf("the fingerprint %s fits more than one request of cluster %s; give more of it", c.Fingerprint, f.Name)}
		}
		return chosen, nil
	}
	if len(candidates) > 1 {
		return nil, &finding.Error{
			Kind: finding.Blocked, Problem: fmt.Sprintf("%d different requesters or keys request the name %s; nothing was accepted", len(candidates), f.Name),
			Try: "compare with the fingerprint that join printed on the managed cluster, then accept that one with --fingerprint; the others are denied",
		}
	}
	return candidates, nil
}

// shortest is how much of a fingerprint has to be given.
const shortest = 8

func matches(fingerprint, given string) bool {
	const prefix = "SHA256:"
	given = strings.TrimPrefix(given, prefix)
	return len(given) >= shortest && strings.HasPrefix(strings.TrimPrefix(fingerprint, prefix), given)
}

// missingRequest returns why there is nothing to approve.
func missingRequest(f Facts, c Choice) string {
	var reasons []string
	for _, r := range f.Requests {
		switch {
		case r.Renewal:
		case r.Rejection != "":
			reasons = append(reasons, fmt.Sprintf("request %s can never be approved: %s", r.Name, r.Rejection))
		case r.State == Denied, r.State == Failed:
			reasons = append(reasons, fmt.Sprintf("request %s is %s", r.Name, strings.ToLower(string(r.State))))
		case !r.Bootstrap && !c.SkipCheck:
			reasons = append(reasons, fmt.Sprintf("request %s is from %s, which is no bootstrap identity (--requesters)", r.Name, r.Requester))
		}
	}
	switch {
	case len(reasons) > 0:
	case c.unrequested(f.Requests):
		return "the agent to request a certificate for its key " + c.Fingerprint
	case f.Cluster.Spec.HubAcceptsClient:
		// Restored from a backup, for example: its agent has a certificate of the past.
		return "the cluster to request a certificate; on the managed cluster, run join --refresh with a new token"
	default:
		return "the cluster to request a certificate"
	}
	return strings.Join(reasons, "; ")
}

// decideDenial denies the pending requests. Unless one of them was chosen, it also
// denies the cluster.
func decideDenial(f Facts, c Choice) (Decision, error) {
	var d Decision
	for _, r := range f.Requests {
		if r.State == Pending && (c.Fingerprint == "" || matches(r.Fingerprint, c.Fingerprint)) {
			d.Deny = append(d.Deny, r)
		}
	}
	if f.Cluster == nil && len(f.Requests) == 0 {
		return d, &finding.Error{Kind: finding.NotFound, Problem: fmt.Sprintf("there is no cluster %s and no request for it", f.Name)}
	}
	if c.Fingerprint == "" && f.Cluster != nil && f.Cluster.Spec.HubAcceptsClient {
		d.Accept = new(false)
	}
	return d, nil
}

func joined(cluster *clusterv1.ManagedCluster) bool {
	return cluster.Spec.HubAcceptsClient && apimeta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionJoined)
}

// alive reports whether an agent renews the cluster's lease.
func alive(cluster *clusterv1.ManagedCluster) bool {
	return cluster != nil && joined(cluster) &&
		!apimeta.IsStatusConditionPresentAndEqual(cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable, "Unknown")
}
