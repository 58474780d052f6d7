package node_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestNoStartWithoutVolumes changes a Pod again and again while a Secret that it
// mounts is missing: what wakes its worker before the next attempt to make the
// volumes must not start a container without them.
func TestNoStartWithoutVolumes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	pod := f.pod("late", corev1.Container{Env: as("serve"), VolumeMounts: []corev1.VolumeMount{{Name: "late", MountPath: "/late"}}})
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "late", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "late"}}},
	}
	f.create(t, pod)
	count := 0
	eventually(t, "several failed attempts", func(ctx context.Context) (bool, error) {
		count++
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"count":"%d"}}}`, count)
		if err := f.Patch(ctx, pod, client.RawPatch(types.MergePatchType, patch)); err != nil {
			return false, err
		}
		return f.events(t, "late", "FailedMount") > 0 && count > 50, nil
	})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.name, Name: "late"}}
	if err := f.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	f.await(t, "late", "it is ready", ready)
	if failed := f.events(t, "late", "Failed"); failed > 0 {
		t.Errorf("a container was started without its volumes, %d times", failed)
	}
}

// events is how often a Pod had an event.
func (f *fixture) events(t *testing.T, pod, reason string) (count int) {
	t.Helper()
	var list corev1.EventList
	if err := f.List(t.Context(), &list, client.InNamespace(f.name)); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if e := &list.Items[i]; e.InvolvedObject.Name == pod && e.Reason == reason {
			count += max(1, int(e.Count))
		}
	}
	return count
}

func TestEnvironmentAndVolumes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.name, Name: "secret"},
		StringData: map[string]string{"password": "old"},
	}
	if err := f.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	pod := f.pod("pod", corev1.Container{
		Args: []string{"--ip=$(POD_IP)", "--same=$$(POD_IP)"},
		Env: append(as("serve"), corev1.EnvVar{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{
			SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "secret"}, Key: "password"},
		}}),
		VolumeMounts: []corev1.VolumeMount{
			{Name: "secret", MountPath: "/etc/secret", ReadOnly: true},
			{Name: "shared", MountPath: "/shared"},
		},
		SecurityContext: &corev1.SecurityContext{ReadOnlyRootFilesystem: new(true)},
		Resources:       corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m")}},
	})
	pod.Spec.InitContainers = []corev1.Container{{
		Name: "init", Image: image + ":v1", Args: []string{"/shared/made"}, Env: as("touch"),
		VolumeMounts: []corev1.VolumeMount{{Name: "shared", MountPath: "/shared"}},
	}}
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "secret"}}},
		{Name: "shared", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	f.create(t, pod)
	pod = f.await(t, "pod", "it is ready", ready)
	if !strings.HasPrefix(pod.Status.PodIP, "127.") || pod.Status.PodIP == pod.Status.HostIP {
		t.Errorf("addresses %s on %s", pod.Status.PodIP, pod.Status.HostIP)
	}
	eventually(t, "an answer", func(context.Context) (bool, error) { return strings.HasPrefix(f.get(t, pod, "/"), "{"), nil })
	var got seen
	if err := json.Unmarshal([]byte(f.get(t, pod, "/")), &got); err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(cp.URL)
	if err != nil {
		t.Fatal(err)
	}
	want := seen{
		PID: 1, Args: []string{"--ip=" + pod.Status.PodIP, "--same=$(POD_IP)"},
		Env: map[string]string{
			role: "serve", "PASSWORD": "old", "POD_IP": pod.Status.PodIP, "HOSTNAME": "pod", "HOME": "/",
			"PATH":                          got.Env["PATH"],
			"KUBERNETES_SERVICE_HOST":       server.Hostname(),
			"KUBERNETES_SERVICE_PORT":       server.Port(),
			"KUBERNETES_SERVICE_PORT_HTTPS": server.Port(),
		},
	}
	if os.Getenv("GOCOVERDIR") != "" { // Containers of an instrumented node count as well.
		want.Env["GOCOVERDIR"] = "/coverage"
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the container sees (-want +got):\n%s", diff)
	}
	const account = "/var/run/secrets/kubernetes.io/serviceaccount/"
	for path, want := range map[string]string{
		"/etc/secret/password": "old", "/shared/made": "by init", account + "namespace": f.name, account + "ca.crt": string(cp.CAData),
	} {
		if got := f.get(t, pod, "/file?path="+path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	// The token is the Pod's own.
	review, err := kubernetes.NewForConfig(cp.ConfigForToken(f.get(t, pod, "/file?path="+account+"token")))
	if err != nil {
		t.Fatal(err)
	}
	_, err = review.CoreV1().Secrets(f.name).List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "system:serviceaccount:"+f.name+":default") {
		t.Errorf("with the Pod's token: %v", err)
	}
	secret.StringData = map[string]string{"password": "new"}
	if err := f.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new secret in the volume", func(context.Context) (bool, error) {
		return f.get(t, pod, "/file?path=/etc/secret/password") == "new", nil
	})
}
