package install

import (
	operatorv1 "open-cluster-management.io/api/operator/v1"
)

// Workload is what the pods of the operator and its components are like.
type Workload struct {
	// Image overrides everything else.
	Image string
	// Registry replaces the registry and path of our image.
	Registry string
	// PullCredentials is a .dockerconfigjson for the image.
	PullCredentials []byte
	// Resources are the requests and limits of the components.
	Resources *operatorv1.ResourceRequirement
	// Placement says on which nodes they run.
	Placement *operatorv1.NodePlacement
	// KeepNamespace leaves creating the operator's namespace to the user.
	KeepNamespace bool
	// SyncLabels has the operator copy its resource's labels onto what it applies; nil
	// keeps.
	SyncLabels *bool
}
