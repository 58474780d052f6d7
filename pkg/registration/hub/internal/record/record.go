package record

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/labelindex"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/csr"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/rbac"
)

// Record is the recorded agent of a cluster.
type Record struct {
	// Agent is the name of the agent; empty when none is known.
	Agent string
	// Since is when the request of the agent was approved.
	Since time.Time
	// Group is true if the bindings are for every agent of the cluster, as OCM
	// creates them.
	Group bool
}

// Known reports whether the bindings have a subject.
func (r Record) Known() bool { return r.Agent != "" || r.Group }

// Names reports whether an agent may act for the cluster.
func (r Record) Names(agent string) bool { return r.Group || agent != "" && agent == r.Agent }

// Subjects returns the subjects of the cluster's bindings.
func (r Record) Subjects(cluster string) []rbacv1.Subject {
	switch {
	case r.Group:
		return []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: names.ClusterGroup(cluster)}}
	case r.Agent != "":
		return []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: names.AgentUser(cluster, r.Agent)}}
	}
	return nil
}

// Annotations returns the annotations of the cluster's bindings.
func (r Record) Annotations() map[string]string {
	if r.Agent == "" {
		return nil
	}
	return map[string]string{
		names.AnnotationAcceptedAgent:   r.Agent,
		names.AnnotationAcceptedAgentAt: credential.Timestamp(r.Since),
	}
}

// Of reads the record of a cluster, from any of its bindings.
func Of(ctx context.Context, reader client.Reader, cluster string) (Record, error) {
	group := false
	for _, key := range []struct{ namespace, name, role string }{
		{"", names.ManagedClusterClusterRole(cluster), names.ManagedClusterClusterRole(cluster)},
		{cluster, names.RegistrationRoleBinding(cluster), names.ClusterRoleRegistration},
		{cluster, names.WorkRoleBinding(cluster), names.ClusterRoleWork},
	} {
		binding, err := rbac.ReadBinding(ctx, reader, key.namespace, key.name)
		if err != nil {
			return Record{}, err
		}
		// A user without the permissions of this role can create a binding to another.
		if binding == nil || !binding.To(key.role) {
			continue
		}
		if r, ok := parse(cluster, binding.Object.GetAnnotations()); ok {
			return r, nil
		}
		group = group || slices.Contains(binding.Subjects, Record{Group: true}.Subjects(cluster)[0])
	}
	return Record{Group: group}, nil
}

func parse(cluster string, annotations map[string]string) (Record, bool) {
	agent := annotations[names.AnnotationAcceptedAgent]
	if _, _, ok := names.ParseAgentUser(names.AgentUser(cluster, agent)); !ok {
		return Record{}, false
	}
	// An invalid time is the zero time, before every approval.
	since, _ := time.Parse(time.RFC3339, annotations[names.AnnotationAcceptedAgentAt])
	return Record{Agent: agent, Since: since}, true
}

// approval is an approved request.
type approval struct {
	agent   string
	at      time.Time
	version uint64
	object  *certificatesv1.CertificateSigningRequest
}

// Elect returns the record that follows from the approved requests.
func (r Record) Elect(cluster string, requests []certificatesv1.CertificateSigningRequest) Record {
	introduces := introduction
	if r.Group {
		introduces = func(request csr.Request) bool { return introduction(request) || request.Renewal() }
	}
	found := approvals(cluster, requests, introduces)
	if len(found) == 0 {
		return r
	}
	last := slices.MaxFunc(found, func(a, b approval) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.version, b.version))
	})
	if !r.Group && last.at.Before(r.Since) {
		return r
	}
	return Record{Agent: last.agent, Since: last.at}
}

// introduction reports whether a request can introduce a new agent: the requester is
// not an agent.
func introduction(request csr.Request) bool {
	_, _, byAgent := names.ParseAgentUser(request.Requester)
	return !byAgent
}

// approvals returns the approved requests for a cluster that introduce an agent.
func approvals(cluster string, requests []certificatesv1.CertificateSigningRequest, introduces func(csr.Request) bool) []approval {
	var found []approval
	for i := range requests {
		at, ok := Approved(&requests[i])
		if !ok {
			continue
		}
		request, err := csr.Vet(&requests[i])
		if err != nil || request.Identity.Cluster != cluster || !introduces(request) {
			continue
		}
		version, _ := strconv.ParseUint(requests[i].ResourceVersion, 10, 64) // Decides within one second only.
		found = append(found, approval{agent: request.Identity.Agent, at: at, version: version, object: &requests[i]})
	}
	return found
}

// Approved returns when a request was approved.
func Approved(request *certificatesv1.CertificateSigningRequest) (at time.Time, ok bool) {
	for _, c := range request.Status.Conditions {
		switch c.Type { // The API server takes these with status True only.
		case certificatesv1.CertificateDenied, certificatesv1.CertificateFailed:
			return time.Time{}, false
		case certificatesv1.CertificateApproved:
			at, ok = c.LastTransitionTime.UTC(), true
		}
	}
	return at, ok
}

// Reader reads bindings and registration requests.
type Reader struct {
	client.Reader

	indexed bool
}

// Live reads from the API server.
func Live(server client.Reader) Reader { return Reader{Reader: server} }

// Cached reads from a cache that has Index.
func Cached(cache client.Reader) Reader { return Reader{Reader: cache, indexed: true} }

// Index lets a cache find the registration requests of a cluster.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	return labelindex.Add(ctx, indexer, &certificatesv1.CertificateSigningRequest{}, names.LabelClusterName)
}

// Requests lists the registration requests of a cluster.
func (r Reader) Requests(ctx context.Context, cluster string) ([]certificatesv1.CertificateSigningRequest, error) {
	var ofCluster client.ListOption = client.MatchingLabels{names.LabelClusterName: cluster}
	if r.indexed {
		ofCluster = labelindex.Is(names.LabelClusterName, cluster)
	}
	var list certificatesv1.CertificateSigningRequestList
	if err := r.List(ctx, &list, ofCluster, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("certificate requests of cluster %s: %w", cluster, err)
	}
	return list.Items, nil
}

// Confirmed returns the approved requests of a cluster that the Reader has, as server has
// them now. It costs a request for each, where Requests of a Live reader has the API server
// go through those of all clusters; an approval that the Reader lacks is missing.
func (r Reader) Confirmed(ctx context.Context, server client.Reader, cluster string) ([]certificatesv1.CertificateSigningRequest, error) {
	requests, err := r.Requests(ctx, cluster)
	if err != nil {
		return nil, err
	}
	var confirmed []certificatesv1.CertificateSigningRequest
	for i := range requests {
		if _, ok := Approved(&requests[i]); !ok {
			continue
		}
		var current certificatesv1.CertificateSigningRequest
		switch err := server.Get(ctx, client.ObjectKeyFromObject(&requests[i]), &current); {
		case apierrors.IsNotFound(err): // The cache is late.
		case err != nil:
			return nil, fmt.Errorf("certificate request %s of cluster %s: %w", requests[i].Name, cluster, err)
		default:
			confirmed = append(confirmed, current)
		}
	}
	return confirmed, nil
}

// Forget deletes the approved requests up to that of the record: they would count as
// approval of the next cluster of the name. Later approvals belong to that cluster.
func (r Record) Forget(ctx context.Context, c client.Client, reader Reader, cluster string) error {
	if !r.Known() {
		return nil
	}
	requests, err := reader.Requests(ctx, cluster)
	if err != nil {
		return err
	}
	for _, a := range approvals(cluster, requests, introduction) {
		if r.Agent != "" && a.at.After(r.Since) {
			continue
		}
		if err := client.IgnoreNotFound(c.Delete(ctx, a.object, client.Preconditions{UID: &a.object.UID})); err != nil {
			return fmt.Errorf("certificate request %s of cluster %s: %w", a.object.Name, cluster, err)
		}
	}
	return nil
}
