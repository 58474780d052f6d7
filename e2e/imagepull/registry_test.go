package imagepull_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

// offline has a registry check tokens by the keys that the cluster publishes.
const offline = "--offline"

// server is a running registry.
type server struct {
	address string
	log     *lockedBuffer
}

// lockedBuffer may be read while a process writes it.
type lockedBuffer struct {
	mu   sync.Mutex
	data bytes.Buffer
}

// Write implements io.Writer.
func (b *lockedBuffer) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.Write(data)
}

// String returns what was written.
func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.String()
}

// program is the registry and its client.
func program(t *testing.T) string {
	t.Helper()
	path, err := controlplane.Binary("registry")
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("%v; build it with: make e2e-registry", err)
	}
	return path
}

// serve starts a registry with the images of the world.
func (w *world) serve(t *testing.T, flags ...string) *server {
	t.Helper()
	user := names.ServiceAccountUser("registry", "registry")
	installation.Create(t, w.admin, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "registry"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:auth-delegator"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
	cert, key := cluster.ServingCert(t, "registry", net.IPv4(127, 0, 0, 1))
	kubeconfig := cluster.KubeconfigFor(t, user, "system:serviceaccounts", "system:authenticated")
	cmd := exec.Command(program(t), append([]string{ //nolint:noctx // It is stopped below.
		"serve", "--dir", w.images, "--audience", audience,
		"--cert", file(t, cert), "--key", file(t, key), "--kubeconfig", file(t, kubeconfig),
	}, flags...)...)
	r := &server{log: &lockedBuffer{}}
	cmd.Stderr = r.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	address, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the registry does not start: %v\n%s", err, r.log)
	}
	r.address = strings.TrimSpace(address)
	return r
}

// image is the image that the tests push and pull.
func (w *world) image(r *server) string { return r.address + "/" + w.shop + "/app:v1" }

// client runs the client with a password and returns the digest that it prints.
func (w *world) client(t *testing.T, password, command string, args ...string) (digest string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(t), append([]string{command, "--ca", file(t, cluster.CAData)}, args...)...)
	cmd.Stdin = strings.NewReader(password)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%w: %s", err, stderr.String())
	}
	return strings.TrimSpace(stdout.String()), nil
}

// push pushes the image as the builder of its namespace and returns its digest.
func (w *world) push(t *testing.T, r *server) string {
	t.Helper()
	w.create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.shop, Name: "builder"}})
	password := cluster.Token(t, w.shop, "builder", authenticationv1.TokenRequestSpec{Audiences: []string{audience}})
	digest, err := w.client(t, password, "push", "--username", "serviceaccount", w.image(r))
	if err != nil {
		t.Fatalf("%v\n%s", err, r.log)
	}
	return digest
}

// pull pulls the image with what a ServiceAccount lists in imagePullSecrets.
func (w *world) pull(t *testing.T, r *server, account *corev1.ServiceAccount) (digest string, err error) {
	t.Helper()
	return w.client(t, "", "pull", "--kubeconfig", file(t, cluster.Kubeconfig(t, "cluster")),
		"--namespace", account.Namespace, "--service-account", account.Name, w.image(r))
}

// pullWith pulls the image with a token.
func (w *world) pullWith(t *testing.T, r *server, token string) error {
	t.Helper()
	_, err := w.client(t, token, "pull", "--username", "serviceaccount", w.image(r))
	return err
}

// refused fails unless a registry refused a pull with a reason, which is in its log.
func refused(t *testing.T, r *server, err error, reason string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "UNAUTHORIZED") || !strings.Contains(r.log.String(), reason) {
		t.Errorf("%v, log %s, want %q", err, r.log, reason)
	}
}

// content is the data of a pull secret, whatever its format.
func content(secret *corev1.Secret) string {
	return string(secret.Data[corev1.DockerConfigJsonKey]) + string(secret.Data[corev1.DockerConfigKey])
}

// credential is an entry of a pull secret.
type credential struct{ Auth []byte }

// tokenIn is the token in a pull secret, empty if it has none.
func tokenIn(t *testing.T, secret *corev1.Secret) string {
	t.Helper()
	var config struct{ Auths map[string]credential }
	err := json.Unmarshal(secret.Data[corev1.DockerConfigJsonKey], &config)
	if secret.Type == corev1.SecretTypeDockercfg {
		err = json.Unmarshal(secret.Data[corev1.DockerConfigKey], &config.Auths)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range config.Auths {
		_, token, _ := strings.Cut(string(entry.Auth), ":")
		return token
	}
	return ""
}

// file is a file with data.
func file(t *testing.T, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
