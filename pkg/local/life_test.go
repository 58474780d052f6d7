package local_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local"
	localplane "github.com/kubectl-ocm/kubectl-ocm/pkg/local/controlplane"
)

//nolint:paralleltest,tparallel // the subtests are the steps of one life
func TestLife(t *testing.T) {
	t.Parallel()
	// Longer than the path of a socket may be.
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	t.Cleanup(func() {
		if _, err := local.Down(context.WithoutCancel(t.Context()), dir, clock.RealClock{}); err != nil {
			t.Error(err)
		}
		if left := processes(t, dir); len(left) > 0 {
			t.Errorf("processes are left: %q", left)
		}
	})
	up(t, options(t, dir, 1))
	first := status(t, dir)
	if len(first) != 2 || first["hub"].Phase != local.Running || first["cluster1"].Phase != local.Running {
		t.Fatalf("after up: %+v", first)
	}
	t.Run("files are private", func(t *testing.T) { testPrivate(t, dir) })
	t.Run("cluster-info is public", func(t *testing.T) { testClusterInfo(t, dir) })
	t.Run("the API server reaches Services", func(t *testing.T) { testWebhook(t, dir) })
	t.Run("up again changes nothing and adds clusters", func(t *testing.T) {
		up(t, options(t, dir, 2))
		again := status(t, dir)
		if len(again) != 3 || again["hub"].PID != first["hub"].PID || again["cluster1"].PID != first["cluster1"].PID {
			t.Errorf("after a second up: %+v", again)
		}
	})
	t.Run("another up at the same time is refused", func(t *testing.T) { testBusy(t, dir) })
	t.Run("a program that dies is restarted", func(t *testing.T) {
		before := status(t, dir)["cluster1"]
		kill(t, before.Components[localplane.APIServer].PID)
		eventually(t, "the restart", func(ctx context.Context) (bool, error) {
			now := status(t, dir)["cluster1"]
			return now.Phase == local.Running && now.Components[localplane.APIServer].Restarts == 1 && now.URL == before.URL, nil
		})
	})
	t.Run("a killed supervisor leaves nothing and up recovers", func(t *testing.T) { testKilledSupervisor(t, dir) })
	t.Run("down works without a supervisor and leaves nothing", func(t *testing.T) {
		kill(t, status(t, dir)["hub"].PID)
		removed, err := local.Down(t.Context(), dir, clock.RealClock{})
		if err != nil || len(removed) != 3 {
			t.Errorf("down removed %v, %v", removed, err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the directory is still there: %v", err)
		}
		eventually(t, "the end of every process", func(context.Context) (bool, error) { return len(processes(t, dir)) == 0, nil })
		if _, err := local.Status(t.Context(), dir); !errors.Is(err, local.ErrNoClusters) {
			t.Errorf("status after down: %v", err)
		}
	})
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if pid <= 0 {
		t.Fatalf("no process to kill: %d", pid)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Fatal(err)
	}
}

func testPrivate(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		// What is below a private directory is private.
		if info.Mode().Perm()&0o077 != 0 && entry.Type()&fs.ModeSocket == 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		if entry.IsDir() && strings.HasSuffix(path, "/node") {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func testClusterInfo(t *testing.T, dir string) {
	t.Helper()
	_, admin := connect(t, dir, "hub")
	anyone, err := rest.HTTPClientFor(rest.AnonymousClientConfig(admin))
	if err != nil {
		t.Fatal(err)
	}
	defer anyone.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, admin.Host+"/api/v1/namespaces/kube-public/configmaps/cluster-info", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := anyone.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var info corev1.ConfigMap
	if err := json.NewDecoder(response.Body).Decode(&info); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.Load([]byte(info.Data["kubeconfig"]))
	if err != nil {
		t.Fatal(err)
	}
	if cluster := config.Clusters[""]; cluster == nil || cluster.Server != admin.Host || !bytes.Equal(cluster.CertificateAuthorityData, admin.CAData) {
		t.Errorf("cluster-info tells %v", info.Data)
	}
}

// testWebhook runs a webhook in a Pod behind a Service, and reads its log.
func testWebhook(t *testing.T, dir string) {
	t.Helper()
	c, _ := connect(t, dir, "hub")
	ctx := t.Context()
	cert, key := servingCert(t, "hook.default.svc")
	labels := map[string]string{"app": "hook"}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hook-1", Labels: labels},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "hook", Image: image, Args: []string{"webhook"},
				Env: []corev1.EnvVar{{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{
					FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"},
				}}},
				Ports:        []corev1.ContainerPort{{Name: "https", ContainerPort: 9443}},
				VolumeMounts: []corev1.VolumeMount{{Name: "tls", MountPath: "/tls"}},
				ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
					TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("https")},
				}},
			}},
			Volumes: []corev1.Volume{{Name: "tls", VolumeSource: corev1.VolumeSource{
				Secret: &corev1.SecretVolumeSource{SecretName: "hook"},
			}}},
		},
	}
	for _, object := range []client.Object{
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hook"},
			Data:       map[string][]byte{"tls.crt": cert, "tls.key": key},
		},
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hook"},
			Spec: corev1.ServiceSpec{
				Selector: labels, Ports: []corev1.ServicePort{{Port: 443, TargetPort: intstr.FromString("https")}},
			},
		},
		pod,
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "hook"},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "hook.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
				ClientConfig: admissionregistrationv1.WebhookClientConfig{
					CABundle: cert, Service: &admissionregistrationv1.ServiceReference{Namespace: "default", Name: "hook"},
				},
				Rules: []admissionregistrationv1.RuleWithOperations{{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"limitranges"}},
				}},
			}},
		},
	} {
		if err := c.Create(ctx, object); err != nil {
			t.Fatal(err)
		}
	}
	last := errors.New("none")
	eventually(t, "an answer of the webhook", func(ctx context.Context) (bool, error) {
		last = c.Create(ctx, &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}})
		return last != nil && strings.Contains(last.Error(), "refused by the webhook"), nil
	})
	var out bytes.Buffer
	err := local.Logs(ctx, local.LogRequest{Dir: dir, Cluster: "hub", Pod: "hook"}, &out)
	if err != nil || !strings.HasPrefix(out.String(), "serving\n") {
		t.Errorf("log %q, %v", out.String(), err)
	}
}

func testBusy(t *testing.T, dir string) {
	t.Helper()
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if err := local.Up(t.Context(), options(t, dir, 1)); !errors.Is(err, local.ErrBusy) {
		t.Errorf("up: %v, want ErrBusy", err)
	}
	if _, err := local.Down(t.Context(), dir, clock.RealClock{}); !errors.Is(err, local.ErrBusy) {
		t.Errorf("down: %v, want ErrBusy", err)
	}
}

func testKilledSupervisor(t *testing.T, dir string) {
	t.Helper()
	c, _ := connect(t, dir, "hub")
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kept"}}
	if err := c.Create(t.Context(), kept); err != nil {
		t.Fatal(err)
	}
	before := status(t, dir)["hub"]
	kill(t, before.PID)
	eventually(t, "the end of its processes", func(context.Context) (bool, error) { return len(processes(t, before.Dir)) == 0, nil })
	eventually(t, "the status of a cluster without a supervisor", func(context.Context) (bool, error) {
		return status(t, dir)["hub"].Phase == local.Stopped, nil
	})
	var taken net.Listener
	eventually(t, "the port of the dead API server", func(ctx context.Context) (bool, error) {
		var err error
		taken, err = (&net.ListenConfig{}).Listen(ctx, "tcp", strings.TrimPrefix(before.URL, "https://"))
		return err == nil, nil
	})
	var problem *local.HintedError
	err := local.Up(t.Context(), options(t, dir, 1))
	if !errors.As(err, &problem) || !strings.Contains(err.Error(), "the port is in use") || problem.Hint() == "" {
		t.Errorf("up with a taken port: %v", err)
	}
	if now := status(t, dir)["hub"]; now.Phase != local.Failed || !strings.Contains(now.Message, "the port is in use") {
		t.Errorf("after a failed up: %+v", now)
	}
	_ = taken.Close()
	up(t, options(t, dir, 1))
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(kept), kept); err != nil {
		t.Errorf("what was there before: %v", err)
	}
	eventually(t, "the Pod to run again", func(ctx context.Context) (bool, error) {
		var pod corev1.Pod
		err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "hook-1"}, &pod)
		return err == nil && pod.Status.ContainerStatuses[0].RestartCount > 0 && pod.Status.ContainerStatuses[0].State.Running != nil, err
	})
}
