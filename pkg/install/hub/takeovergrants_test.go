//go:build linux

package hub_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/takeover"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

const askingTemplate = `

apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnTemplate
metadata: {name: asking}
spec:
  addonName: a
  agentSpec: {workload: {manifests: []}}
  registration:
  - type: KubeClient
    kubeClient:
      hubPermissions:
      - {type: CurrentCluster, currentCluster: {clusterRoleName: wanted}}
      - {type: SingleNamespace, singleNamespace: {namespace: shared, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}}}
  - type: CustomSigner
    customSigner: {signerName: example.com/s, signingCA: {name: ca}}
`

// TestTakeOverNamesGrants: the plan names what AddOnTemplates ask for, which an
// administrator has to grant.
func TestTakeOverNamesGrants(t *testing.T) {
	t.Parallel()
	_, r := theirHub(t)
	template := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(askingTemplate), &template.Object); err != nil {
		t.Fatal(err)
	}
	installation.Create(t, r.Client, template)
	plan, err := r.Plan(t.Context(), takeOverOf(), bootstrap.ClusterInfo{Server: "https://hub.example"})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(plan.Changes, func(c takeover.Change) bool { return c.Name == "addon-templates" })
	if i < 0 {
		t.Fatalf("changes %+v", plan.Changes)
	}
	message := plan.Changes[i].Message
	for _, part := range []string{
		`bind on hubpermissions/currentcluster "a:clusterrole:wanted" with bind on clusterroles "wanted"`,
		`bind on hubpermissions/singlenamespace "a:role:reader" in namespace shared with bind on roles "reader"`,
		`sign on customsigners "a:example.com/s:ca" in namespace open-cluster-management-hub with approve and sign on signers "example.com/s" and get on its Secret "ca"`,
	} {
		if !strings.Contains(message, part) {
			t.Errorf("no %s in %s", part, message)
		}
	}
}

// TestTakeOverKeepsSyncLabels: what OCM's operator copies, ours copies too, and no change
// has to be accepted for it.
func TestTakeOverKeepsSyncLabels(t *testing.T) {
	t.Parallel()
	_, r := theirHub(t)
	key := client.ObjectKey{Namespace: names.OperatorNamespace, Name: names.ClusterManagerOperator}
	var operator appsv1.Deployment
	if err := r.Client.Get(t.Context(), key, &operator); err != nil {
		t.Fatal(err)
	}
	args := &operator.Spec.Template.Spec.Containers[0].Args
	*args = append(*args, "--enable-sync-labels=true")
	if err := r.Client.Update(t.Context(), &operator); err != nil {
		t.Fatal(err)
	}
	plan, err := r.Plan(t.Context(), takeOverOf("placements", "cluster-sets"), bootstrap.ClusterInfo{Server: "https://hub.example"})
	if err != nil || len(plan.Unaccepted()) > 0 {
		t.Errorf("%v, %v", plan.Unaccepted(), err)
	}
	objs, err := r.Objects(t.Context(), takeOverOf(), bootstrap.ClusterInfo{Server: "https://hub.example"})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(objs)
	if err != nil || !strings.Contains(string(data), `"--enable-sync-labels"`) {
		t.Errorf("our operator does not copy labels: %s, %v", data, err)
	}
}
