package klusterlet

import (
	"fmt"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/operand"
)

// hubFile is a path in the work agent's pods, where the hub kubeconfig is mounted
// with the files that it names and the name of the cluster.
const hubFile = "/spoke/hub-kubeconfig/kubeconfig"

// workLeftOut reports whether a Klusterlet has no work agent.
func workLeftOut(k *operatorv1.Klusterlet) bool {
	return k.Annotations[names.AnnotationWorkAgent] == "false"
}

// work is the work agent, unless it is left out. It has no pods until the
// registration agent has stored a hub kubeconfig, without which they cannot start.
func (r *Reconciler) work(k *operatorv1.Klusterlet, gates operand.GateSetting, replicas int32) *manifests.WorkAgent {
	if workLeftOut(k) {
		return nil
	}
	permissions, err := names.ParseWorkPermissions(k.Annotations[names.AnnotationWorkPermissions])
	if err != nil {
		permissions = names.WorkPermissionsNone // Not applied; see plan.
	}
	if awaitsHub(k) {
		replicas = 0
	}
	return &manifests.WorkAgent{
		Component:   manifests.Component{Pod: r.pod(k, k.Spec.WorkImagePullSpec, replicas), Args: workArgs(k, gates)},
		Permissions: permissions,
	}
}

// awaitsHub reports whether the agent has not stored a hub kubeconfig yet.
// See docs/reference/wire-contract.md#work-replicas.
func awaitsHub(k *operatorv1.Klusterlet) bool {
	c := apimeta.FindStatusCondition(k.Status.Conditions, names.ConditionHubConnectionDegraded)
	return c == nil || c.Status == metav1.ConditionTrue && strings.Contains(c.Reason, names.ReasonHubKubeConfigSecretMissing)
}

// workArgs are the work agent's flags. An empty cluster name makes it read the one
// that is stored with the hub kubeconfig.
func workArgs(k *operatorv1.Klusterlet, gates operand.GateSetting) []string {
	args := []string{
		"--spoke-cluster-name=" + k.Spec.ClusterName,
		"--agent-id=" + string(k.UID),
		"--workload-source-driver=kube",
		"--workload-source-config=" + hubFile,
	}
	args = append(args, gates.Args()...)
	c := k.Spec.WorkConfiguration
	if c == nil {
		return args
	}
	if d := c.AppliedManifestWorkEvictionGracePeriod; d != nil {
		args = append(args, "--appliedmanifestwork-eviction-grace-period="+d.Duration.String())
	}
	if d := c.StatusSyncInterval; d != nil && d.Duration != 0 {
		args = append(args, "--status-sync-interval="+d.Duration.String())
	}
	return args
}

// rejectedWork returns the rejection of permissions that no work agent can have; nil if
// there is none. The CRD rejects the other settings that would prevent its start.
func rejectedWork(k *operatorv1.Klusterlet) *metav1.Condition {
	_, err := names.ParseWorkPermissions(k.Annotations[names.AnnotationWorkPermissions])
	if err == nil || workLeftOut(k) {
		return nil
	}
	return operand.Rejection(ReasonSettingInvalid, "metadata.annotations[%s]: %v. Nothing of the work agent is changed until then", names.AnnotationWorkPermissions, err)
}

// workMessage returns the message of the condition WorkDesiredDegraded for an agent
// without pods.
func workMessage(k *operatorv1.Klusterlet) string {
	if workLeftOut(k) {
		return fmt.Sprintf("the work agent is left out: the annotation %s is \"false\"", names.AnnotationWorkAgent)
	}
	return "the work agent starts when the hub has accepted the cluster"
}
