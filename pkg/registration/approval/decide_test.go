package approval_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/approval"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/setup"
)

const (
	keyA = "SHA256:aaaaaaaaaaaaaaaaaaaa"
	keyB = "SHA256:bbbbbbbbbbbbbbbbbbbb"
)

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func request(name, key string, state approval.State, change ...func(*approval.Request)) approval.Request {
	r := approval.Request{
		Name: name, Cluster: "c1", State: state, Requester: names.BootstrapServiceAccountUser,
		Fingerprint: key, Bootstrap: true, Created: epoch,
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

func by(user string) func(*approval.Request) {
	return func(r *approval.Request) { r.Requester, r.Bootstrap = user, false }
}

func refused(r *approval.Request) { r.Rejection = "it has subject alternative names" }

func renewal(r *approval.Request) { r.Renewal, r.Bootstrap = true, false }

func cluster(change ...func(*clusterv1.ManagedCluster)) *clusterv1.ManagedCluster {
	c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
	for _, f := range change {
		f(c)
	}
	return c
}

func accepted(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = true }

func condition(kind string, status metav1.ConditionStatus, reason string) func(*clusterv1.ManagedCluster) {
	return func(c *clusterv1.ManagedCluster) {
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{
			Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(epoch.Add(time.Hour)),
		})
	}
}

func joined(c *clusterv1.ManagedCluster) {
	condition(clusterv1.ManagedClusterConditionJoined, metav1.ConditionTrue, "x")(c)
	condition(clusterv1.ManagedClusterConditionAvailable, metav1.ConditionTrue, "x")(c)
}

func lost(c *clusterv1.ManagedCluster) {
	condition(clusterv1.ManagedClusterConditionJoined, metav1.ConditionTrue, "x")(c)
	condition(clusterv1.ManagedClusterConditionAvailable, metav1.ConditionUnknown, "x")(c)
}

func denied(c *clusterv1.ManagedCluster) {
	condition(clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionFalse, names.ReasonHubDenied)(c)
}

func left(c *clusterv1.ManagedCluster) {
	c.Annotations = map[string]string{names.AnnotationLeft: "true"}
}

func fromAWS(c *clusterv1.ManagedCluster) {
	c.Annotations = map[string]string{identity.AnnotationCluster: "arn:aws:eks:us-west-2:222222222222:cluster/c1"}
}

func granted(c *clusterv1.ManagedCluster) {
	condition(names.ConditionRegistrationGranted, metav1.ConditionTrue, names.ReasonGranted)(c)
	last := &c.Status.Conditions[len(c.Status.Conditions)-1]
	last.Message = "The awsirsa driver has granted the identity " + eks().Identified.Key + " of the cluster"
}

// grantedBefore is granted with another identity.
func grantedBefore(c *clusterv1.ManagedCluster) {
	condition(names.ConditionRegistrationGranted, metav1.ConditionTrue, names.ReasonGranted)(c)
	c.Status.Conditions[len(c.Status.Conditions)-1].Message = "The awsirsa driver has granted the identity 0123456789abcdef0123456789abcdef of the cluster"
}

func grantFails(c *clusterv1.ManagedCluster) {
	condition(names.ConditionRegistrationGranted, metav1.ConditionFalse, names.ReasonGrantFailed)(c)
}

// eks is what a cluster registers as that announces an ARN.
func eks(change ...func(*approval.Identity)) *approval.Identity {
	e := &approval.Identity{
		Driver:     setup.Setup{},
		Identified: driver.Identified{ID: "arn:aws:eks:us-west-2:222222222222:cluster/c1", Key: "0a0b0c0d0a0b0c0d0a0b0c0d0a0b0c0d"},
	}
	for _, f := range change {
		f(e)
	}
	return e
}

// ungranted is what a cluster registers as that announces an ARN to a hub without AWS.
func ungranted(e *approval.Identity) { e.Ungranted = true }

// toEKS and toCSR are the annotations that a cluster is to have.
func toEKS() map[string]string { return cluster(fromAWS).Annotations }

func toCSR() map[string]string { return map[string]string{} }

// want is what a decision should be: names of requests, and whether something
// is waited for.
type want struct {
	approve, deny string
	accept        string
	change        bool
	waiting       bool
	kind          finding.Kind
}

func TestDecide(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		cluster  *clusterv1.ManagedCluster
		requests []approval.Request
		choice   approval.Choice
		eks      *approval.Identity
		change   map[string]string
		want     want
	}{
		{
			name: "nothing is there yet",
			want: want{waiting: true},
		},
		{
			name: "a cluster without a request is not accepted in advance", cluster: cluster(),
			want: want{waiting: true},
		},
		{
			name: "one request is approved and the cluster accepted", cluster: cluster(),
			requests: []approval.Request{request("a", keyA, approval.Pending)},
			want:     want{approve: "a", accept: "true", waiting: true},
		},
		{
			name: "two requests of one key are one claim", cluster: cluster(),
			requests: []approval.Request{request("a", keyA, approval.Pending), request("b", keyA, approval.Pending)},
			want:     want{approve: "ab", accept: "true", waiting: true},
		},
		{
			name: "an approved request waits for the signer", cluster: cluster(accepted),
			requests: []approval.Request{request("a", keyA, approval.Approved)},
			want:     want{waiting: true},
		},
		{
			name: "an issued request is done", cluster: cluster(accepted),
			requests: []approval.Request{request("a", keyA, approval.Issued)},
		},
		{
			name: "an issued request of a cluster that is not accepted accepts it", cluster: cluster(),
			requests: []approval.Request{request("a", keyA, approval.Issued)},
			want:     want{accept: "true"},
		},
		{
			name: "a joined cluster whose requests are gone is done", cluster: cluster(accepted, joined),
		},
		{
			name: "two keys are refused", cluster: cluster(),
			requests: []approval.Request{request("a", keyA, approval.Pending), request("b", keyB, approval.Pending)},
			want:     want{kind: finding.Blocked},
		},
		{
			name: "two requesters with one key are refused", cluster: cluster(),
			requests: []approval.Request{
				request("a", keyA, approval.Pending),
				request("b", keyA, approval.Pending, func(r *approval.Request) { r.Requester = "system:bootstrap:ocmhub" }),
			},
			want: want{kind: finding.Blocked},
		},
		{
			name: "a second key after the first was issued is refused", cluster: cluster(accepted, joined),
			requests: []approval.Request{request("a", keyA, approval.Issued), request("b", keyB, approval.Pending)},
			want:     want{kind: finding.Blocked},
		},
		{
			name: "a new key against an agent that works is refused", cluster: cluster(accepted, joined),
			requests: []approval.Request{request("b", keyB, approval.Pending)},
			want:     want{kind: finding.Blocked},
		},
		{
			name: "a new key of a cluster that was lost is taken", cluster: cluster(accepted, lost),
			requests: []approval.Request{request("b", keyB, approval.Pending)},
			want:     want{approve: "b", waiting: true},
		},
		{
			name: "a cluster that left comes back with a new key", cluster: cluster(denied),
			requests: []approval.Request{
				request("a", keyA, approval.Issued),
				request("b", keyB, approval.Pending, func(r *approval.Request) { r.Created = epoch.Add(2 * time.Hour) }),
			},
			want: want{approve: "b", accept: "true", waiting: true},
		},
		{
			name: "a cluster that was denied is accepted again", cluster: cluster(joined, denied),
			requests: []approval.Request{request("a", keyA, approval.Issued)},
			want:     want{accept: "true"},
		},
		{
			name: "also when its request is forgotten", cluster: cluster(joined, denied),
			want: want{accept: "true"},
		},
		{
			name: "a cluster that left is not accepted before it asks", cluster: cluster(joined, denied, left),
			requests: []approval.Request{request("a", keyA, approval.Issued)},
			want:     want{waiting: true},
		},
		{
			name: "a cluster that never joined is not accepted before it asks", cluster: cluster(denied),
			want: want{waiting: true},
		},
		{
			name: "a cluster that was denied and asks anew is judged by its request", cluster: cluster(joined, denied),
			requests: []approval.Request{request("b", keyB, approval.Pending)},
			want:     want{approve: "b", accept: "true", waiting: true},
		},
		{
			name: "a certificate of one that was never accepted is a rival", cluster: cluster(),
			requests: []approval.Request{request("a", keyA, approval.Issued), request("b", keyB, approval.Pending)},
			want:     want{kind: finding.Blocked},
		},
		{
			name: "certificates of two keys are the past of an accepted cluster", cluster: cluster(accepted, joined),
			requests: []approval.Request{request("a", keyA, approval.Issued), request("b", keyB, approval.Issued)},
		},
		{
			name: "an agent that asks for nothing accepts no stranger", cluster: cluster(),
			requests: []approval.Request{request("a", keyA, approval.Pending)}, choice: approval.Choice{Own: true},
			want: want{waiting: true},
		},
		{
			name: "an agent whose request is not there yet accepts no stranger", cluster: cluster(),
			requests: []approval.Request{request("a", keyA, approval.Pending)}, choice: approval.Choice{Own: true, Fingerprint: keyB},
			want: want{waiting: true},
		},
		{
			name: "an agent's own request goes before a stranger's", cluster: cluster(),
			requests: []approval.Request{request("a", keyA, approval.Pending), request("b", keyB, approval.Pending)},
			choice:   approval.Choice{Own: true, Fingerprint: keyB},
			want:     want{approve: "b", deny: "a", accept: "true", waiting: true},
		},
		{
			name: "an agent that was denied is accepted again beside a stranger", cluster: cluster(joined, denied),
			requests: []approval.Request{request("a", keyA, approval.Pending)}, choice: approval.Choice{Own: true},
			want: want{accept: "true"},
		},
		{
			name: "an agent that is connected needs nothing beside a stranger", cluster: cluster(joined, accepted),
			requests: []approval.Request{request("a", keyA, approval.Pending)}, choice: approval.Choice{Own: true},
		},
		{
			// It gave up its credential, with join --rotate, and has stored another key.
			name: "an agent with a key is not done before its request", cluster: cluster(joined, accepted),
			requests: []approval.Request{request("a", keyA, approval.Issued)}, choice: approval.Choice{Own: true, Fingerprint: keyB},
			want: want{waiting: true},
		},
		{
			name: "an agent whose certificate is issued is done", cluster: cluster(joined, accepted),
			requests: []approval.Request{request("a", keyA, approval.Issued)}, choice: approval.Choice{Own: true, Fingerprint: keyA},
		},
		{
			name: "the fingerprint chooses and conflicting requests are denied", cluster: cluster(),
			requests: []approval.Request{request("a", keyA, approval.Pending), request("b", keyB, approval.Pending)},
			choice:   approval.Choice{Fingerprint: keyB},
			want:     want{approve: "b", deny: "a", accept: "true", waiting: true},
		},
		{
			name: "the beginning of a fingerprint is enough", cluster: cluster(),
			requests: []approval.Request{request("a", keyA, approval.Pending), request("b", keyB, approval.Pending)},
			choice:   approval.Choice{Fingerprint: "aaaaaaaa"},
			want:     want{approve: "a", deny: "b", accept: "true", waiting: true},
		},
		{
			name: "a few characters are not enough", cluster: cluster(),
			requests: []approval.Request{request("a", keyA, approval.Pending)},
			choice:   approval.Choice{Fingerprint: "aaaa"},
			want:     want{kind: finding.NotFound},
		},
		{
			name: "a fingerprint of nobody changes nothing", cluster: cluster(),
			requests: []approval.Request{request("a", keyA, approval.Pending)},
			choice:   approval.Choice{Fingerprint: keyB},
			want:     want{kind: finding.NotFound},
		},
		{
			name: "a request of somebody else is left alone", cluster: cluster(),
			requests: []approval.Request{request("a", keyA, approval.Pending, by("mallory"))},
			want:     want{waiting: true},
		},
		{
			name: "unless that user is named", cluster: cluster(),
			requests: []approval.Request{request("a", keyA, approval.Pending, by("importer"))},
			choice:   approval.Choice{Requesters: []string{"importer"}},
			want:     want{approve: "a", accept: "true", waiting: true},
		},
		{
			name: "naming a user does not settle a conflict", cluster: cluster(),
			requests: []approval.Request{request("a", keyA, approval.Pending, by("importer")), request("b", keyB, approval.Pending)},
			choice:   approval.Choice{Requesters: []string{"importer"}},
			want:     want{kind: finding.Blocked},
		},
		{
			name: "skipping the check does not settle a conflict", cluster: cluster(),
			requests: []approval.Request{request("a", keyA, approval.Pending, by("mallory")), request("b", keyB, approval.Pending)},
			choice:   approval.Choice{SkipCheck: true},
			want:     want{kind: finding.Blocked},
		},
		{
			name: "a request that can never be approved is no claim", cluster: cluster(),
			requests: []approval.Request{request("a", keyA, approval.Pending), request("b", keyB, approval.Pending, refused)},
			want:     want{approve: "a", accept: "true", waiting: true},
		},
		{
			name: "a renewal is the hub's business", cluster: cluster(accepted, joined),
			requests: []approval.Request{request("a", keyA, approval.Pending, renewal)},
		},
		{
			name: "a denied request stays denied", cluster: cluster(),
			requests: []approval.Request{request("a", keyA, approval.Denied)},
			want:     want{waiting: true},
		},
		{
			name: "a cluster of AWS needs no request", cluster: cluster(fromAWS), eks: eks(),
			want: want{accept: "true", waiting: true},
		},
		{
			name: "it waits for its identity", cluster: cluster(fromAWS, accepted, grantFails), eks: eks(),
			want: want{waiting: true},
		},
		{
			name: "and is as desired with it", cluster: cluster(fromAWS, accepted, granted), eks: eks(),
		},
		{
			name: "but not with the one that it had before", cluster: cluster(fromAWS, accepted, grantedBefore), eks: eks(),
			want: want{waiting: true},
		},
		{
			name: "an ARN that cannot be", cluster: cluster(fromAWS), eks: eks(func(e *approval.Identity) { e.Problem = errors.New("no ARN") }),
			want: want{kind: finding.Blocked},
		},
		{
			name: "an identifier that another cluster has", cluster: cluster(fromAWS), eks: eks(func(e *approval.Identity) { e.Holder = "c2" }),
			want: want{kind: finding.Blocked},
		},
		{
			name: "an ARN and a key are two claims", cluster: cluster(fromAWS), eks: eks(),
			requests: []approval.Request{request("a", keyA, approval.Pending)},
			want:     want{kind: finding.Blocked},
		},
		{
			name: "of which the ARN was chosen", cluster: cluster(fromAWS), eks: eks(),
			requests: []approval.Request{request("a", keyA, approval.Pending)},
			choice:   approval.Choice{Register: approval.Register{Driver: identity.AuthType}},
			want:     want{deny: "a", accept: "true", waiting: true},
		},
		{
			name: "a key is no choice of the certificate", cluster: cluster(fromAWS, accepted, granted), eks: eks(),
			requests: []approval.Request{request("a", keyA, approval.Pending)},
			choice:   approval.Choice{Fingerprint: keyA},
			want:     want{kind: finding.Blocked},
		},
		{
			name: "from certificates to AWS", cluster: cluster(accepted, joined), eks: eks(), change: toEKS(),
			requests: []approval.Request{request("a", keyA, approval.Issued)},
			choice:   approval.Choice{Register: approval.Register{Driver: identity.AuthType}},
			want:     want{accept: "true", change: true, waiting: true},
		},
		{
			name: "from AWS to certificates, which the agent has to request", cluster: cluster(fromAWS, accepted, joined, granted), change: toCSR(),
			choice: approval.Choice{Register: approval.Register{Driver: driver.CSR}},
			want:   want{waiting: true},
		},
		{
			name: "whose key is chosen while the agent with the AWS identity works", cluster: cluster(fromAWS, accepted, joined, granted), change: toCSR(),
			requests: []approval.Request{request("a", keyA, approval.Pending)},
			choice:   approval.Choice{Register: approval.Register{Driver: driver.CSR}},
			want:     want{kind: finding.Blocked},
		},
		{
			name: "and is approved then", cluster: cluster(fromAWS, accepted, joined, granted), change: toCSR(),
			requests: []approval.Request{request("a", keyA, approval.Pending), request("b", keyB, approval.Pending)},
			choice:   approval.Choice{Register: approval.Register{Driver: driver.CSR}, Fingerprint: keyA},
			want:     want{approve: "a", deny: "b", accept: "true", change: true, waiting: true},
		},
		{
			name: "a change that was interrupted between denial and acceptance", cluster: cluster(fromAWS, denied, joined), change: toCSR(),
			requests: []approval.Request{request("a", keyA, approval.Issued)},
			choice:   approval.Choice{Register: approval.Register{Driver: driver.CSR}, Fingerprint: keyA},
			want:     want{accept: "true", change: true},
		},
		{
			name: "nor is one accepted that would never have a credential", cluster: cluster(fromAWS), eks: eks(ungranted),
			want: want{kind: finding.Blocked},
		},
		{
			name: "an AWS identity that a cluster once asked for does not matter when it has a request", cluster: cluster(fromAWS), eks: eks(ungranted),
			requests: []approval.Request{request("a", keyA, approval.Pending)},
			want:     want{approve: "a", accept: "true", waiting: true},
		},
		{
			name: "denying denies what waits and the cluster", cluster: cluster(accepted),
			requests: []approval.Request{request("a", keyA, approval.Issued), request("b", keyB, approval.Pending)},
			choice:   approval.Choice{Deny: true},
			want:     want{deny: "b", accept: "false"},
		},
		{
			name: "denying one key leaves the cluster", cluster: cluster(accepted),
			requests: []approval.Request{request("a", keyA, approval.Pending), request("b", keyB, approval.Pending)},
			choice:   approval.Choice{Deny: true, Fingerprint: keyB},
			want:     want{deny: "b"},
		},
		{
			name:   "denying nobody is an error",
			choice: approval.Choice{Deny: true},
			want:   want{kind: finding.NotFound},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			v, err := approval.Decide(approval.Facts{Name: "c1", Cluster: tc.cluster, Requests: tc.requests, Identity: tc.eks, Change: tc.change}, tc.choice)
			got := want{approve: list(v.Approve), deny: list(v.Deny), change: v.Change != nil, waiting: v.Awaited != approval.AwaitsNothing, kind: kindOf(err)}
			if v.Accept != nil {
				got.accept = map[bool]string{true: "true", false: "false"}[*v.Accept]
			}
			if got != tc.want {
				t.Errorf("got %+v, want %+v (%s, %v)", got, tc.want, v.Waiting, err)
			}
		})
	}
}

func kindOf(err error) finding.Kind {
	if decided, ok := errors.AsType[*finding.Error](err); ok {
		return decided.Kind
	}
	return ""
}

func list(requests []approval.Request) string {
	var out strings.Builder
	for _, r := range requests {
		out.WriteString(r.Name)
	}
	return out.String()
}

// TestAwaitedDoesNotDependOnNames is about a cluster whose name is that of
// another state: it waits for its own request, not for the hub's signer.
func TestAwaitedDoesNotDependOnNames(t *testing.T) {
	t.Parallel()
	c := cluster()
	c.Name = "issuer-test"
	for _, tc := range []struct {
		facts approval.Facts
		want  approval.Awaited
	}{
		{approval.Facts{Name: "issuer-test"}, approval.AwaitsRegistration},
		{approval.Facts{Name: "issuer-test", Cluster: c}, approval.AwaitsRequest},
		{approval.Facts{Name: "issuer-test", Cluster: c, Requests: []approval.Request{request("issuer-test-a", keyA, approval.Denied)}}, approval.AwaitsRequest},
		{approval.Facts{Name: "issuer-test", Cluster: c, Requests: []approval.Request{request("issuer-test-a", keyA, approval.Pending)}}, approval.AwaitsCertificate},
	} {
		v, err := approval.Decide(tc.facts, approval.Choice{})
		if err != nil || v.Awaited != tc.want || v.Waiting == "" {
			t.Errorf("%d is missing (%q, %v), want %d", v.Awaited, v.Waiting, err, tc.want)
		}
	}
}
