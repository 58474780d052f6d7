package node_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node/kubelet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node/sandbox"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/process"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

const (
	// role says what the test binary does as the entrypoint of a container.
	role     = "NODE_TEST_ROLE"
	image    = "example.com/tests"
	patience = 60 * time.Second
)

var cp *controlplane.ControlPlane

// fixture is a namespace and a node of its own on the shared control plane.
type fixture struct {
	client.Client
	name string
	dir  string
	// stop ends the node as a crash of its process would, as far as the API sees.
	stop func()
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{Client: cp.Client(t), dir: t.TempDir()}
	// A name of its own for every run: tests may be repeated.
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: strings.ToLower(strings.TrimPrefix(t.Name(), "Test")) + "-",
	}}
	if err := f.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	f.name = namespace.Name
	f.startNode(t)
	eventually(t, "the default service account", func(ctx context.Context) (bool, error) {
		err := f.Get(ctx, client.ObjectKey{Namespace: f.name, Name: "default"}, &corev1.ServiceAccount{})
		return err == nil, client.IgnoreNotFound(err)
	})
	return f
}

func (f *fixture) startNode(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	addresses, err := node.ReserveAddresses(t.Context(), f.name)
	if err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(cp.URL)
	if err != nil {
		t.Fatal(err)
	}
	group := process.NewGroup()
	cert, key := cp.ServingCert(t, f.name, net.ParseIP(addresses.NodeIP()))
	n, err := node.New(node.Config{
		Name: f.name, Dir: f.dir, Version: "v1.36.0-local",
		API:        cp.ConfigFor(t, node.UserName(f.name), node.Group),
		ServerHost: server.Hostname(), ServerPort: server.Port(),
		Server:   kubelet.Config{Client: "kube-apiserver-kubelet-client", ClientCA: cp.CAData, Cert: cert, Key: key},
		Images:   node.Images{image: self},
		Launcher: sandbox.Launcher{Group: group, Self: []string{self, "enter"}},
		Clock:    clock.RealClock{}, Log: logr.Discard(),
	}, addresses)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	stopped := false
	f.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the node ended with %v", err)
		}
		group.Close()
	}
	t.Cleanup(f.stop)
}

// pod returns a Pod for the scheduler to bind to the fixture's node.
func (f *fixture) pod(name string, container corev1.Container) *corev1.Pod {
	container.Name, container.Image = "main", image+":v1"
	container.Env = append(container.Env, corev1.EnvVar{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"},
	}})
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.name, Name: name},
		Spec: corev1.PodSpec{
			NodeSelector:                  map[string]string{corev1.LabelHostname: f.name},
			TerminationGracePeriodSeconds: ptr.To[int64](5),
			Containers:                    []corev1.Container{container},
		},
	}
}

func as(r string) []corev1.EnvVar { return []corev1.EnvVar{{Name: role, Value: r}} }

func (f *fixture) create(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	if err := f.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}

// await waits until the Pod is as wanted and returns it.
func (f *fixture) await(t *testing.T, name, what string, done func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		err := f.Get(ctx, client.ObjectKey{Namespace: f.name, Name: name}, pod)
		return err == nil && done(pod), client.IgnoreNotFound(err)
	})
	if err != nil {
		status, _ := json.MarshalIndent(pod.Status, "", " ")
		t.Fatalf("wait until %s: %v; the Pod's status is %s", what, err, status)
	}
	return pod
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (f *fixture) get(t *testing.T, pod *corev1.Pod, path string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+pod.Status.PodIP+":8000"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func logsOf(t *testing.T, pod *corev1.Pod, options corev1.PodLogOptions) (string, error) {
	t.Helper()
	clients, err := kubernetes.NewForConfig(cp.Config())
	if err != nil {
		t.Fatal(err)
	}
	data, err := clients.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &options).DoRaw(t.Context())
	return string(data), err
}

func eventually(t *testing.T, what string, done wait.ConditionWithContextFunc) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, done); err != nil {
		t.Fatalf("wait for %s: %v", what, err)
	}
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

func TestRestartsAndLogs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create(t, f.pod("pod", corev1.Container{Env: as("serve")}))
	pod := f.await(t, "pod", "it is ready", ready)
	eventually(t, "an answer", func(context.Context) (bool, error) { return strings.HasPrefix(f.get(t, pod, "/"), "{"), nil })
	if _, err := logsOf(t, pod, corev1.PodLogOptions{Previous: true}); err == nil {
		t.Error("there are logs of an earlier start before there was one")
	}
	f.get(t, pod, "/crash")
	f.await(t, "pod", "it was restarted", func(pod *corev1.Pod) bool {
		s := pod.Status.ContainerStatuses[0]
		return s.RestartCount == 1 && s.LastTerminationState.Terminated != nil &&
			s.LastTerminationState.Terminated.ExitCode == 3 && s.State.Running != nil
	})
	for want, options := range map[string]corev1.PodLogOptions{
		"serving\n":           {},
		"serving\ncrashing\n": {Previous: true},
		"crashing\n":          {Previous: true, TailLines: ptr.To[int64](1)},
	} {
		eventually(t, "the log "+want, func(context.Context) (bool, error) {
			got, err := logsOf(t, pod, options)
			return got == want, err
		})
	}
	f.create(t, f.pod("loop", corev1.Container{Env: as("fail"), Args: []string{"x"}}))
	f.await(t, "loop", "it is in CrashLoopBackOff", func(pod *corev1.Pod) bool {
		return len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].State.Waiting != nil &&
			pod.Status.ContainerStatuses[0].State.Waiting.Reason == "CrashLoopBackOff"
	})
	once := f.pod("once", corev1.Container{Env: as("fail")})
	once.Spec.RestartPolicy = corev1.RestartPolicyNever
	f.create(t, once)
	f.await(t, "once", "it has failed", func(pod *corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodFailed && pod.Status.ContainerStatuses[0].State.Terminated.ExitCode == 7
	})
}

func TestProbes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("health")}},
			PeriodSeconds: 1, FailureThreshold: 2,
		}
	}
	pod := f.pod("pod", corev1.Container{
		Env: as("serve"), Ports: []corev1.ContainerPort{{Name: "health", ContainerPort: 8000}},
		ReadinessProbe: probe("/health"), LivenessProbe: probe("/file?path=/state/alive"),
		StartupProbe: probe("/file?path=/state/alive"),
		VolumeMounts: []corev1.VolumeMount{{Name: "state", MountPath: "/state"}},
	})
	pod.Spec.Containers[0].StartupProbe.FailureThreshold = 100
	pod.Spec.Volumes = []corev1.Volume{{Name: "state", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	f.create(t, pod)
	pod = f.await(t, "pod", "it runs", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning })
	if ready(pod) || *pod.Status.ContainerStatuses[0].Started {
		t.Error("ready or started before its probes have passed")
	}
	eventually(t, "an answer", func(context.Context) (bool, error) { return strings.HasPrefix(f.get(t, pod, "/"), "{"), nil })
	f.get(t, pod, "/set?path=/state/alive")
	f.get(t, pod, "/set?path=/state/well")
	f.await(t, "pod", "it is ready", ready)
	f.get(t, pod, "/unset?path=/state/well")
	pod = f.await(t, "pod", "it is not ready", func(pod *corev1.Pod) bool { return !ready(pod) })
	if n := pod.Status.ContainerStatuses[0].RestartCount; n != 0 {
		t.Errorf("%d restarts for not being ready", n)
	}
	f.get(t, pod, "/unset?path=/state/alive")
	f.await(t, "pod", "it was restarted", func(pod *corev1.Pod) bool { return pod.Status.ContainerStatuses[0].RestartCount > 0 })
}

func TestWhatCannotRunSaysWhy(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	unknown := f.pod("unknown", corev1.Container{})
	unknown.Spec.Containers[0].Image = "example.com/other:v1"
	command := f.pod("command", corev1.Container{Command: []string{"/bin/sh"}})
	missing := f.pod("missing", corev1.Container{Env: []corev1.EnvVar{{Name: "X", ValueFrom: &corev1.EnvVarSource{
		ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "none"}, Key: "x"},
	}}}})
	host := f.pod("host", corev1.Container{})
	host.Spec.Volumes = []corev1.Volume{{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
	for _, test := range []struct {
		pod             *corev1.Pod
		reason, message string
	}{
		{unknown, "ErrImagePull", "image is not known to this local cluster: example.com/other:v1; known are: " + image},
		{unknown, "ImagePullBackOff", "known are: " + image},
		{command, "RunContainerError", `the command "/bin/sh" is not in the image`},
		{missing, "CreateContainerConfigError", `configmaps "none" not found`},
		{host, "ContainerCreating", "this kind of volume is not supported by local nodes"},
	} {
		if test.pod.UID == "" {
			f.create(t, test.pod)
		}
		pod := f.await(t, test.pod.Name, test.reason, func(pod *corev1.Pod) bool {
			return len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].State.Waiting != nil &&
				pod.Status.ContainerStatuses[0].State.Waiting.Reason == test.reason &&
				strings.Contains(pod.Status.ContainerStatuses[0].State.Waiting.Message, test.message)
		})
		if pod.Status.Phase != corev1.PodPending {
			t.Errorf("%s is %s, want Pending", pod.Name, pod.Status.Phase)
		}
	}
}

func TestDeletion(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create(t, f.pod("pod", corev1.Container{Env: as("serve")}))
	pod := f.await(t, "pod", "it is ready", ready)
	eventually(t, "an answer", func(context.Context) (bool, error) { return strings.HasPrefix(f.get(t, pod, "/"), "{"), nil })
	dir := filepath.Join(f.dir, "pods", string(pod.UID))
	if _, err := os.Stat(dir); err != nil {
		t.Fatal(err)
	}
	if err := f.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the Pod", func(ctx context.Context) (bool, error) {
		err := f.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	eventually(t, "the end of its directory", func(context.Context) (bool, error) {
		_, err := os.Stat(dir)
		return os.IsNotExist(err), nil
	})
	if answer := f.get(t, pod, "/"); strings.HasPrefix(answer, "{") {
		t.Error("a deleted Pod answers")
	}
}

func TestDeletionOfAPodThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	pod := f.pod("pod", corev1.Container{Env: as("stubborn")})
	pod.Spec.TerminationGracePeriodSeconds = new(int64(1))
	pod.Finalizers = []string{"example.com/look"}
	f.create(t, pod)
	f.await(t, "pod", "it ignores the signal", func(pod *corev1.Pod) bool {
		if !ready(pod) {
			return false
		}
		log, err := logsOf(t, pod, corev1.PodLogOptions{})
		return err == nil && log == "ignoring\n"
	})
	// What others say about the Pod is kept.
	patch := []byte(`{"status":{"conditions":[{"type":"DisruptionTarget","status":"True","reason":"Test"}]}}`)
	if err := f.Status().Patch(t.Context(), pod, client.RawPatch(types.StrategicMergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
	if err := f.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	pod = f.await(t, "pod", "it was killed", func(pod *corev1.Pod) bool {
		return pod.Status.ContainerStatuses[0].State.Terminated != nil
	})
	if code := pod.Status.ContainerStatuses[0].State.Terminated.ExitCode; code != 137 || pod.Status.Phase != corev1.PodFailed {
		t.Errorf("exit code %d, phase %s", code, pod.Status.Phase)
	}
	if !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.DisruptionTarget }) {
		t.Errorf("somebody else's condition was lost: %v", pod.Status.Conditions)
	}
	pod.Finalizers = nil
	if err := f.Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the Pod", func(ctx context.Context) (bool, error) {
		err := f.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

func TestNodeRestart(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, name := range []string{"stays", "goes"} {
		f.create(t, f.pod(name, corev1.Container{Env: as("serve")}))
	}
	stays := f.await(t, "stays", "it is ready", ready)
	goes := f.await(t, "goes", "it is ready", ready)
	f.stop()
	if answer := f.get(t, stays, "/"); strings.HasPrefix(answer, "{") {
		t.Error("a container outlives the node")
	}
	if err := f.Delete(t.Context(), goes, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	f.startNode(t)
	f.await(t, "stays", "it runs again", func(pod *corev1.Pod) bool {
		s := pod.Status.ContainerStatuses[0]
		return s.RestartCount == 1 && s.State.Running != nil && s.LastTerminationState.Terminated != nil
	})
	eventually(t, "the end of the deleted Pod's directory", func(context.Context) (bool, error) {
		_, err := os.Stat(filepath.Join(f.dir, "pods", string(goes.UID)))
		return os.IsNotExist(err), nil
	})
}
