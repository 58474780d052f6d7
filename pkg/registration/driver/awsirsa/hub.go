package awsirsa

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/awsauth"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/cloud"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
)

const (
	// driftRecheck is how often a grant that is complete is compared with AWS.
	driftRecheck = time.Hour
	// principalRecheck is how often the hub checks that the managed cluster's role
	// exists, which the administrator of its account creates.
	principalRecheck = 30 * time.Second
	// propagationRecheck is how often the hub tries whether EKS sees a new role.
	propagationRecheck = 5 * time.Second
)

// HubConfig configures the driver on the hub.
type HubConfig struct {
	// Cluster is the hub's EKS cluster.
	Cluster awsarn.Cluster
	// Approved are the managed clusters that need no person.
	Approved Patterns
	// Tags are put on roles and access entries besides the driver's own.
	Tags cloud.Tags
	// Mapping is how roles are mapped to users of the hub.
	Mapping MappingMode
	// PodIdentity lets agents pass on the session tags of EKS Pod Identity.
	PodIdentity bool
}

// Hub grants managed clusters IAM roles of the hub's account, and maps the roles to
// users of the hub. It has no state and reads existing roles from AWS.
//
// A role is the hub's only if a tag of it says so; a role of the right name without
// that tag is never changed, and never deleted.
type Hub struct {
	config  HubConfig
	aws     aws.Config
	awsAuth awsauth.Store
}

var _ driver.Granter = (*Hub)(nil)

// NewHub returns the driver for config. It can plan and admit; it can grant once
// it is connected.
func NewHub(config HubConfig) *Hub { return &Hub{config: config} }

// Connect has the driver use an AWS configuration, in the hub's region, and a way
// to the hub's ConfigMaps.
func (h *Hub) Connect(config aws.Config, store awsauth.Store) { h.aws, h.awsAuth = config, store }

// SetupWithManager connects the driver as the process is configured: AWS by the
// SDK's default chain, which IRSA and EKS Pod Identity are part of. It sends no
// request to AWS.
func (h *Hub) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	return h.setup(ctx, mgr, metrics.Registry)
}

func (h *Hub) setup(ctx context.Context, mgr ctrl.Manager, registry prometheus.Registerer) error {
	config, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithRegion(h.config.Cluster.Region))
	if err != nil {
		return fmt.Errorf("load the AWS configuration: %w", err)
	}
	requests, err := cloud.NewMetrics(registry)
	if err != nil {
		return err
	}
	requests.Count(&config)
	h.Connect(config, awsauth.Store{Live: mgr.GetAPIReader(), Client: mgr.GetClient()})
	return nil
}

// Type implements driver.Granter.
func (h *Hub) Type() driver.AuthType { return identity.AuthType }

// Objection implements driver.Hub: a cluster that registers with this driver needs no
// person if its ARN matches an approved pattern as a whole. Other clusters are not
// this driver's.
func (h *Hub) Objection(cluster *clusterv1.ManagedCluster) string {
	announced, err := h.Announced(cluster)
	switch {
	case err != nil:
		return err.Error()
	case announced != nil && !h.config.Approved.Match(announced.Managed.String()):
		return fmt.Sprintf("the EKS cluster %s matches no pattern of approved ARNs", announced.Managed)
	}
	return ""
}

// Grant implements driver.Granter. It makes or repairs the role and then its
// mapping.
func (h *Hub) Grant(ctx context.Context, grant driver.Grant) (driver.Progress, error) {
	progress, err := h.grant(ctx, grant)
	return progress, authorized(err)
}

// authorized marks the error of a caller whom AWS does not allow enough.
func authorized(err error) error {
	if cloud.Unauthorized(err) {
		return &driver.UnauthorizedError{Err: err}
	}
	return err
}

func (h *Hub) grant(ctx context.Context, grant driver.Grant) (driver.Progress, error) {
	t, err := h.target(grant)
	if err != nil {
		return driver.Progress{}, err
	}
	authentication, err := t.client.Authentication(ctx)
	if err != nil {
		return driver.Progress{}, err
	}
	mapRole, err := h.mapping(authentication)
	if err != nil {
		return driver.Progress{}, err
	}
	role, err := t.ensureRole(ctx)
	if err == nil {
		err = mapRole(ctx, t, role)
	}
	if waiting, ok := errors.AsType[*waitingError](err); ok {
		return driver.Progress{Waiting: waiting.sentence, After: waiting.after}, nil
	}
	return driver.Progress{After: driftRecheck}, err
}

// waitingError is returned for a missing precondition that another component, or time,
// provides.
type waitingError struct {
	sentence string
	after    time.Duration
}

// Error implements error.
func (w *waitingError) Error() string { return w.sentence }

// Revoke implements driver.Granter: the mappings first, so that a session of the role
// that is still valid in AWS has no user on the hub.
func (h *Hub) Revoke(ctx context.Context, grant driver.Grant) error {
	return authorized(h.revoke(ctx, grant))
}

func (h *Hub) revoke(ctx context.Context, grant driver.Grant) error {
	t, err := h.target(grant)
	if err != nil {
		return err
	}
	authentication, err := t.client.Authentication(ctx)
	if err != nil {
		return err
	}
	role, err := t.client.Role(ctx, t.role)
	if err != nil {
		return err
	}
	if role != nil && !t.owns(role) {
		return nil // It was there before, and Grant went no further than that.
	}
	if authentication.Entries {
		if err := t.client.DeleteEntry(ctx, t.role); err != nil {
			return err
		}
	}
	if authentication.ConfigMap {
		if err := h.awsAuth.Remove(ctx, t.role.String()); err != nil {
			return err
		}
	}
	if role == nil {
		return nil
	}
	return t.client.DeleteRole(ctx, t.role)
}
