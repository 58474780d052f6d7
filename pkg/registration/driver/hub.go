package driver

import (
	"context"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// Hub is a registration driver on the hub.
type Hub interface {
	// Objection returns why a person is needed to accept the cluster, a sentence for
	// the user, and nothing if the hub may accept it, as far as this driver is
	// concerned. It sends no request.
	Objection(cluster *clusterv1.ManagedCluster) string
}

// Granter is a driver on the hub whose credentials depend on objects outside the hub's
// API, such as a role of a cloud provider. The hub records a Grant before it is made,
// where no agent can write, so that all its objects can be found and removed.
//
// Errors of its methods are messages for the user that name the failure and the next
// step, and an *UnauthorizedError if permissions are missing. The same failure always
// has the same text, because the text becomes a condition and each change of a
// condition is a write.
type Granter interface {
	Hub
	// Type is the name under which grants are recorded.
	Type() AuthType
	// Plan returns what the cluster is to be granted once it is accepted, nil if
	// it does not register with this driver. It depends on the cluster's name and
	// on the annotations of its Identifier alone, sends no request, and returns the
	// same every time. An error says what is wrong with the annotations.
	Plan(cluster *clusterv1.ManagedCluster) (*Grant, error)
	// Grant makes what is recorded, and repairs it. It can be called at any time
	// and again after any failure.
	Grant(ctx context.Context, grant Grant) (Progress, error)
	// Revoke removes everything that Grant made or may have made. That nothing is
	// there is no error.
	Revoke(ctx context.Context, grant Grant) error
}

// UnauthorizedError is the error of a Granter without the necessary permissions of the
// external service: a user with permissions may grant and revoke in its place.
type UnauthorizedError struct{ Err error }

// Error implements error.
func (e *UnauthorizedError) Error() string { return e.Err.Error() }

// Unwrap returns what the service refused.
func (e *UnauthorizedError) Unwrap() error { return e.Err }

// Grant is a driver's grant to a cluster, as the hub records it.
type Grant struct {
	// Cluster is the ManagedCluster's name.
	Cluster string `json:"cluster"`
	// Key is the identifier of the grant, which no two clusters may share. The hub
	// rejects a second cluster with the key of another one. It must not be empty.
	Key string `json:"key"`
	// Subjects are the subjects of the cluster's agent on the hub with its credential.
	// No two clusters share a subject, even if they share the key.
	Subjects []rbacv1.Subject `json:"subjects,omitempty"`
	// Data is the driver's input to create and remove the grant. It is not secret: the
	// hub stores it in a ConfigMap and names it in events. When the plan of a cluster
	// has other data than the record, the hub revokes the recorded grant and grants the
	// plan: leave out everything that Grant can change in place.
	Data map[string]string `json:"data,omitempty"`
}

// Progress is how far a Grant is that met no error.
type Progress struct {
	// Waiting is a sentence about what the grant is waiting for; empty when
	// everything is made.
	Waiting string
	// After is when to call Grant again, to continue or to find external changes. Zero
	// is the hub's default.
	After time.Duration
}

// Plan returns the plan of a cluster, and the driver that it is of: the first
// that the cluster registers with. Both are nil if it registers with none that
// grants. An error is the one of Granter.Plan.
func Plan(drivers []Hub, cluster *clusterv1.ManagedCluster) (Granter, *Grant, error) {
	for _, d := range drivers {
		granter, ok := d.(Granter)
		if !ok {
			continue
		}
		if plan, err := granter.Plan(cluster); plan != nil || err != nil {
			return granter, plan, err
		}
	}
	return nil, nil, nil
}
