package addonconfig_test

import (
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonconfig"
)

// TestHash has the hash that other parties compute: the SHA-256 of the content as Go
// encodes it, in which three characters are escaped.
func TestHash(t *testing.T) {
	t.Parallel()
	config := addonconfig.Read(addonconfig.DeploymentConfigs())
	if err := config.UnmarshalJSON([]byte(`{"spec":{"nodePlacement":{"nodeSelector":{"a":"b"}},"customizedVariables":[{"value":"<b>&","name":"A"}]},` +
		`"status":{"x":"y"},"metadata":{"name":"one"},"kind":"AddOnDeploymentConfig","apiVersion":"addon.open-cluster-management.io/v1beta1"}`)); err != nil {
		t.Fatal(err)
	}
	// sha256sum of {"spec":{"customizedVariables":[{"name":"A","value":"\u003cb\u003e\u0026"}],"nodePlacement":{"nodeSelector":{"a":"b"}}}}
	const want = "75f500bb34056b24dd48f4c90ebfb81b1afa60ce119659ef95d3b878997c3469"
	if got, err := addonconfig.Hash(config); err != nil || got != want {
		t.Errorf("got %s, %v", got, err)
	}
}
