package awsirsa

import (
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
)

// What a grant records: the ARNs of the two EKS clusters and of the role.
const (
	dataHub     = "hubCluster"
	dataManaged = "managedCluster"
	dataRole    = "role"
)

// Plan implements driver.Granter.
func (h *Hub) Plan(cluster *clusterv1.ManagedCluster) (*driver.Grant, error) {
	pair, err := h.Announced(cluster)
	if pair == nil || err != nil {
		return nil, err
	}
	return &driver.Grant{
		Cluster:  cluster.Name,
		Key:      pair.Identifier(),
		Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: names.MappedClusterGroup(cluster.Name)}},
		Data: map[string]string{
			dataHub: pair.Hub.String(), dataManaged: pair.Managed.String(), dataRole: pair.HubRole().String(),
		},
	}, nil
}

// Announced returns the hub with the EKS cluster that a ManagedCluster is by its
// annotations, nil if it does not register with this driver.
func (h *Hub) Announced(cluster *clusterv1.ManagedCluster) (*identity.Pair, error) {
	arn, key, err := AnnouncedARN(cluster)
	suffix, suffixed := cluster.Annotations[identity.AnnotationSuffix]
	switch {
	case err != nil:
		return nil, err
	case key == "" && !suffixed:
		return nil, nil
	case key == "":
		return nil, fmt.Errorf("the annotation %s of ManagedCluster %s is set, and %s, the ARN of its EKS cluster, is not; join the cluster again",
			identity.AnnotationSuffix, cluster.Name, identity.AnnotationCluster)
	}
	managed, err := awsarn.ParseCluster(arn)
	if err != nil {
		return nil, fmt.Errorf("the annotation %s of ManagedCluster %s: %w", key, cluster.Name, err)
	}
	pair, err := identity.NewPair(h.config.Cluster, managed)
	if err != nil {
		return nil, fmt.Errorf("the ManagedCluster %s cannot register: %w", cluster.Name, err)
	}
	if suffixed && suffix != pair.Identifier() {
		return nil, fmt.Errorf("the agents of ManagedCluster %s, the EKS cluster %s, were set up for another hub than this, the EKS cluster %s: "+
			"their roles end with %.64q and not with %s; join the cluster again with --hub-cluster-arn %s",
			cluster.Name, managed, pair.Hub, suffix, pair.Identifier(), pair.Hub)
	}
	return &pair, nil
}

// AnnouncedARN returns the ARN that a ManagedCluster names and the annotation that
// it is from, which is empty if the cluster does not register with this driver. All
// spellings must agree.
func AnnouncedARN(cluster *clusterv1.ManagedCluster) (arn, key string, err error) {
	for _, spelling := range []string{
		identity.AnnotationCluster, identity.AnnotationClusterOld, identity.AnnotationClusterBare,
	} {
		value, ok := cluster.Annotations[spelling]
		switch {
		case !ok:
		case key == "":
			arn, key = value, spelling
		case value != arn:
			return "", "", fmt.Errorf("the annotations %s and %s of ManagedCluster %s name two EKS clusters; remove one", key, spelling, cluster.Name)
		}
	}
	return arn, key, nil
}

// GrantedRole returns the role that a grant of this driver gave to its cluster.
func GrantedRole(grant driver.Grant) (awsarn.Role, error) {
	_, role, err := recorded(grant)
	return role, err
}

// errRecord says that a record is not of this driver.
var errRecord = errors.New("the record of the grant does not name a role of the hub")

// recorded returns the pair and the role of a recorded grant. The hub of the record
// counts, even if the hub's flags have changed.
func recorded(grant driver.Grant) (identity.Pair, awsarn.Role, error) {
	hub, errHub := awsarn.ParseCluster(grant.Data[dataHub])
	managed, errManaged := awsarn.ParseCluster(grant.Data[dataManaged])
	role, errRole := awsarn.ParseRole(grant.Data[dataRole])
	if err := errors.Join(errHub, errManaged, errRole); err != nil {
		return identity.Pair{}, awsarn.Role{}, errRecord
	}
	pair, err := identity.NewPair(hub, managed)
	if err == nil && pair.HubRole() != role {
		err = errRecord
	}
	return pair, role, err
}
