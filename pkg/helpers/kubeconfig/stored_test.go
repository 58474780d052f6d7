package kubeconfig_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/discovery"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
)

const hubRole = "arn:aws:iam::123456789012:role/ocm-hub-79e99112993014816615711cbd35a9bc"

func stored(user clientcmdapi.AuthInfo) kubeconfig.Hub {
	return kubeconfig.Hub{ClusterName: "hub", Cluster: clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}, User: user}
}

// plugin is an entry for the plugin as agents store it.
func plugin(command string, args ...string) *clientcmdapi.ExecConfig {
	return &clientcmdapi.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", Command: command, Args: args,
		InteractiveMode: clientcmdapi.IfAvailableExecInteractiveMode,
	}
}

func own() []string {
	return []string{"aws", "get-token", "--cluster-name", "hub", "--region=eu-west-1", "--role-arn", hubRole}
}

// both are the two ways in which a stored kubeconfig is made safe.
func both(dir string) map[string]func(kubeconfig.Hub) (kubeconfig.Hub, error) {
	return map[string]func(kubeconfig.Hub) (kubeconfig.Hub, error){
		"contained": func(h kubeconfig.Hub) (kubeconfig.Hub, error) { return h.Contained(nil) },
		"mounted":   func(h kubeconfig.Hub) (kubeconfig.Hub, error) { return h.Mounted(dir) },
	}
}

// TestStoredProgramsDoNotRun proves with a plugin that writes a file that a
// client of the kubeconfig as it is runs it, and that no other client does.
func TestStoredProgramsDoNotRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	marker := filepath.Join(dir, "ran")
	hub := stored(clientcmdapi.AuthInfo{Exec: plugin("sh", "-c", "touch "+marker)})
	use := func(h kubeconfig.Hub) bool {
		config, err := h.Config()
		if err != nil {
			t.Fatal(err)
		}
		c, err := discovery.NewDiscoveryClientForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.RESTClient().Get().AbsPath("/version").DoRaw(t.Context()); err == nil || errors.Is(err, context.Canceled) {
			t.Fatalf("a server that does not exist: %v", err)
		}
		_, err = os.Stat(marker)
		return err == nil
	}
	for name, safe := range both(dir) {
		h, err := safe(hub)
		if _, ok := errors.AsType[*kubeconfig.UnsafeError](err); !ok || !errors.Is(err, kubeconfig.ErrInvalid) {
			t.Errorf("%s: got %v", name, err)
		}
		if want := `invalid kubeconfig: it runs the program "sh", which a kubeconfig that is stored in a cluster may not`; err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
		if h.User.Exec != nil {
			t.Errorf("%s: the plugin is in what is returned with the error", name)
		}
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("the plugin ran")
	}
	if !use(hub) {
		t.Error("the plugin of this test cannot run, so that it proves nothing")
	}
}

func TestStoredRefusesForeignPrograms(t *testing.T) {
	t.Parallel()
	with := func(args ...string) clientcmdapi.AuthInfo {
		return clientcmdapi.AuthInfo{Exec: plugin("kubectl-ocm", args...)}
	}
	base := []string{"aws", "get-token", "--cluster-name", "hub"}
	for name, user := range map[string]clientcmdapi.AuthInfo{
		"an auth provider":           {AuthProvider: &clientcmdapi.AuthProviderConfig{Name: "oidc"}},
		"the AWS CLI":                {Exec: plugin("/awscli/dist/aws", own()...)},
		"a name that begins as ours": {Exec: plugin("kubectl-ocm-evil", own()...)},
		"another command of ours":    with("unjoin", "c1", "--yes"),
		"no arguments":               with(),
		"a token of the user":        with(base...),
		"a role of the user":         with(append(slices.Clone(base), "--role-arn", "arn:aws:iam::123456789012:role/Admin")...),
		"a role with a path":         with(append(slices.Clone(base), "--role-arn", "arn:aws:iam::123456789012:role/ocm-hub-a/b")...),
		"a role with a suffix":       with(append(slices.Clone(base), "--role-arn", hubRole+"-admin")...),
		"a role with a short name":   with(append(slices.Clone(base), "--role-arn", "arn:aws:iam::123456789012:role/ocm-hub-add")...),
		"two roles":                  with(append(own(), "--role-arn", "arn:aws:iam::123456789012:role/Admin")...),
		"a flag of another kind":     with(append(own(), "--kubeconfig", "/etc/passwd")...),
		"an argument":                with(append(own(), "more")...),
		"a line break":               with("aws\nget-token", "--role-arn", hubRole),
	} {
		for way, safe := range both(t.TempDir()) {
			_, err := safe(stored(user))
			if _, ok := errors.AsType[*kubeconfig.UnsafeError](err); !ok {
				t.Errorf("%s, %s: got %v", name, way, err)
			}
		}
	}
}

// TestStoredRunsOurselves: a path in a Secret is not where this program is.
func TestStoredRunsOurselves(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"kubectl-ocm", "clusteradm", "/kubectl-ocm", "/tmp/evil/kubectl-ocm", `C:\bin\kubectl-ocm.exe`} {
		entry := plugin(command, own()...)
		entry.Env = []clientcmdapi.ExecEnvVar{{Name: "LD_PRELOAD", Value: "/tmp/evil.so"}}
		entry.InstallHint = "run this"
		entry.ProvideClusterInfo = true
		entry.StdinUnavailable = true
		for way, safe := range both("/dir") {
			h, err := safe(stored(clientcmdapi.AuthInfo{Exec: entry}))
			if err != nil {
				t.Fatalf("%s, %s: %v", command, way, err)
			}
			want := plugin(self, own()...)
			want.InteractiveMode = clientcmdapi.NeverExecInteractiveMode
			if got := h.User.Exec; got.String() != want.String() || got.Command != self || !slices.Equal(got.Args, own()) ||
				len(got.Env) > 0 || got.InstallHint != "" || got.ProvideClusterInfo {
				t.Errorf("%s, %s: got %+v", command, way, got)
			}
			if entry.Command != command || len(entry.Env) == 0 {
				t.Errorf("%s, %s: the stored entry was changed", command, way)
			}
		}
	}
}

// TestContainedReadsNoFile: what a stored kubeconfig names is in its Secret.
func TestContainedReadsNoFile(t *testing.T) {
	t.Parallel()
	secret := map[string][]byte{"ca.crt": []byte("ca"), "tls.crt": []byte("cert"), "tls.key": []byte("key"), "token": []byte("token")}
	hub := stored(clientcmdapi.AuthInfo{ClientCertificate: "tls.crt", ClientKey: "/spoke/hub-kubeconfig/tls.key", TokenFile: "token"})
	hub.Cluster.CertificateAuthority = "ca.crt"
	got, err := hub.Contained(secret)
	if err != nil {
		t.Fatal(err)
	}
	u := got.User
	if u.ClientCertificate+u.ClientKey+u.TokenFile+got.Cluster.CertificateAuthority != "" {
		t.Errorf("it still names files: %+v", got)
	}
	if string(u.ClientCertificateData) != "cert" || string(u.ClientKeyData) != "key" || u.Token != "token" || string(got.Cluster.CertificateAuthorityData) != "ca" {
		t.Errorf("got %+v", got)
	}
}

func TestStoredRefusesOtherFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secretFile := filepath.Join(t.TempDir(), "id_rsa")
	if err := os.WriteFile(secretFile, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(dir, secretFile)
	if err != nil {
		t.Fatal(err)
	}
	for name, set := range map[string]func(*kubeconfig.Hub, string){
		"tokenFile":             func(h *kubeconfig.Hub, f string) { h.User.TokenFile = f },
		"client-certificate":    func(h *kubeconfig.Hub, f string) { h.User.ClientCertificate = f },
		"client-key":            func(h *kubeconfig.Hub, f string) { h.User.ClientKey = f },
		"certificate-authority": func(h *kubeconfig.Hub, f string) { h.Cluster.CertificateAuthority = f },
	} {
		for _, file := range []string{secretFile, relative, "../" + filepath.Base(dir) + "2/x"} {
			for way, safe := range both(dir) {
				hub := stored(clientcmdapi.AuthInfo{})
				set(&hub, file)
				_, err := safe(hub)
				if _, ok := errors.AsType[*kubeconfig.UnsafeError](err); !ok || !strings.Contains(err.Error(), name+" \"") {
					t.Errorf("%s %s, %s: got %v", name, file, way, err)
				}
			}
		}
	}
}

func TestMountedFilesStayFiles(t *testing.T) {
	t.Parallel()
	hub := stored(clientcmdapi.AuthInfo{ClientCertificate: "tls.crt", ClientKey: "/spoke/hub/tls.key"})
	got, err := hub.Mounted("/spoke/hub")
	if err != nil {
		t.Fatal(err)
	}
	if got.User.ClientCertificate != "/spoke/hub/tls.crt" || got.User.ClientKey != "/spoke/hub/tls.key" || got.User.TokenFile != "" {
		t.Errorf("got %+v", got.User)
	}
	if hub.User.ClientCertificate != "tls.crt" {
		t.Error("the original was changed")
	}
}
