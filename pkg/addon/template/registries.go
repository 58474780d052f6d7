package template

import (
	"encoding/json"
	"fmt"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// registriesOf returns the registries that a cluster pulls images from instead of others.
func registriesOf(cluster *clusterv1.ManagedCluster) ([]addonv1beta1.ImageMirror, error) {
	text := cluster.Annotations[clusterv1.ClusterImageRegistriesAnnotationKey]
	if text == "" {
		return nil, nil
	}
	var annotation struct {
		Registries []addonv1beta1.ImageMirror `json:"registries"`
	}
	if err := json.Unmarshal([]byte(text), &annotation); err != nil {
		return nil, fmt.Errorf("annotation %s of the ManagedCluster is not valid: %w", clusterv1.ClusterImageRegistriesAnnotationKey, err)
	}
	return annotation.Registries, nil
}
