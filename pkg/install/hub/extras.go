package hub

import (
	"context"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// publicInfo returns the ConfigMap cluster-info and RBAC for unauthenticated users to
// read it. A joining cluster gets the hub's CA from it before it has a credential; the
// hash in the join command makes that safe. kubeadm publishes the same.
func publicInfo(info bootstrap.ClusterInfo) ([]client.Object, error) {
	data, err := info.Encode()
	if err != nil {
		return nil, err
	}
	const role = "open-cluster-management:cluster-info"
	meta := metav1.ObjectMeta{Namespace: names.ClusterInfoNamespace, Name: role}
	return []client.Object{
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: names.ClusterInfoNamespace, Name: names.ClusterInfoConfigMap},
			Data:       map[string]string{"kubeconfig": string(data)},
		},
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"configmaps"},
			ResourceNames: []string{names.ClusterInfoConfigMap}, Verbs: []string{"get"},
		}}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
			Subjects: []rbacv1.Subject{
				{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:unauthenticated"},
				{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:authenticated"},
			},
		},
	}, nil
}

// cleanupName names everything of the cleanup job.
const cleanupName = "ocm-cleanup"

// cleanupJob returns the CronJob that removes clusters which have left, and what it
// may do: read and delete ManagedClusters, nothing else.
func cleanupJob(c Cleanup, image string) []client.Object {
	meta := metav1.ObjectMeta{Namespace: names.OperatorNamespace, Name: cleanupName, Labels: map[string]string{"app": cleanupName}}
	role := metav1.ObjectMeta{Name: "open-cluster-management:cleanup", Labels: meta.Labels}
	return []client.Object{
		&corev1.ServiceAccount{ObjectMeta: meta},
		&rbacv1.ClusterRole{ObjectMeta: role, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{clusterv1.GroupName}, Resources: []string{"managedclusters"}, Verbs: []string{"get", "list", "delete"},
		}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: role,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: meta.Namespace, Name: meta.Name}},
		},
		&batchv1.CronJob{ObjectMeta: meta, Spec: batchv1.CronJobSpec{
			Schedule: c.Schedule, ConcurrencyPolicy: batchv1.ForbidConcurrent,
			SuccessfulJobsHistoryLimit: new(int32(1)), FailedJobsHistoryLimit: new(int32(1)),
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
				BackoffLimit: new(int32(2)),
				Template:     corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels}, Spec: cleanupPod(c.After, image)},
			}},
		}},
	}
}

func cleanupPod(after time.Duration, image string) corev1.PodSpec {
	return corev1.PodSpec{
		ServiceAccountName: cleanupName,
		RestartPolicy:      corev1.RestartPolicyNever,
		ImagePullSecrets:   []corev1.LocalObjectReference{{Name: names.ImagePullSecret}},
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: "cleanup", Image: image,
			Args: []string{"controller", "cleanup", deniedFor + after.String()},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("2m"), corev1.ResourceMemory: resource.MustParse("16Mi"),
			}},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), Privileged: new(false), ReadOnlyRootFilesystem: new(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
	}
}

// liveCleanup reads the cleanup job, if there is one.
func (r Runner) liveCleanup(ctx context.Context) (*Cleanup, error) {
	job, err := lookup.Get(ctx, r.Client, client.ObjectKey{Namespace: names.OperatorNamespace, Name: cleanupName}, &batchv1.CronJob{})
	if job == nil {
		return nil, err
	}
	cleanup := &Cleanup{Schedule: job.Spec.Schedule, After: 24 * time.Hour}
	for _, container := range job.Spec.JobTemplate.Spec.Template.Spec.Containers {
		for _, arg := range container.Args {
			value, ok := strings.CutPrefix(arg, deniedFor)
			if after, err := time.ParseDuration(value); ok && err == nil {
				cleanup.After = after
			}
		}
	}
	return cleanup, nil
}

// deniedFor is the flag of "controller cleanup" that holds Cleanup.After.
const deniedFor = "--denied-for="
