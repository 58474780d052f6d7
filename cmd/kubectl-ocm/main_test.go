//go:build linux

package main

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata/script")

// TestMain puts the command that make build has built into the PATH, under all of its names.
func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("left out: the tests need what make build builds, and control planes")
		os.Exit(0)
	}
	if err := install(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	m.Run()
}

// programs is the directory of the command. It has to outlive the tests of a binary
// that is killed, so it stands next to the command itself.
const programs = "../../bin/names"

func install() error {
	if _, err := exec.LookPath(filepath.Join(programs, "../kubectl-ocm")); err != nil {
		return fmt.Errorf("%w; build it with: make build", err)
	}
	dir, err := filepath.Abs(programs)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, name := range []string{"kubectl-ocm", "clusteradm", "kubectl_complete-ocm", names.CredentialProvider} {
		if err := os.Symlink("../kubectl-ocm", filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// TestScript runs the commands as a user would. Every script has its own
// directory, no kubeconfig and no home.
func TestScript(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               func(env *testscript.Env) error { return setup(t, env) },
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"request":  cmdRequest,
			"issued":   cmdIssued,
			"snapshot": cmdSnapshot,
			"code":     cmdCode,
			"harmless": cmdHarmless,
			"timeout":  cmdTimeout,
			"terminal": cmdTerminal,
		},
	})
}

// setup gives a script kubectl and the source tree, and the control planes that
// its file "controlplanes" names.
func setup(t *testing.T, env *testscript.Env) error {
	t.Helper()
	bin := filepath.Join(env.WorkDir, ".bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		return err
	}
	if err := os.Symlink(controlplane.Localkube(t), filepath.Join(bin, "kubectl")); err != nil {
		return err
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	env.Setenv("PATH", bin+string(os.PathListSeparator)+env.Getenv("PATH"))
	env.Setenv("ROOT", root)
	if dir := os.Getenv("GOCOVERDIR"); dir != "" {
		env.Setenv("GOCOVERDIR", dir)
	}
	tb, ok := env.T().(testing.TB)
	if !ok {
		return fmt.Errorf("a %T cannot start control planes", env.T())
	}
	env.Values[testingKey{}] = tb
	wanted, err := os.ReadFile(filepath.Join(env.WorkDir, "controlplanes"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the script needs none
	}
	if err != nil {
		return err
	}
	for name := range strings.FieldsSeq(string(wanted)) {
		var options []controlplane.Option
		if name == "nosigner" {
			options = append(options, controlplane.WithoutSigner())
		}
		cp := controlplane.Lease(tb, options...)
		file := filepath.Join(env.WorkDir, name+".kubeconfig")
		if err := os.WriteFile(file, cp.Kubeconfig(tb, name), 0o600); err != nil {
			return err
		}
		env.Setenv(strings.ToUpper(name), file)
		if err := serving(tb, env, cp, name); err != nil {
			return err
		}
	}
	return nil
}

// serving gives a script a loopback address of its own, in LOOPBACK, and for
// each control plane a certificate for it: NAME.crt and NAME.key, by NAME.ca.
func serving(tb testing.TB, env *testscript.Env, cp *controlplane.ControlPlane, name string) error {
	tb.Helper()
	if env.Getenv("LOOPBACK") == "" {
		var random [3]byte
		if _, err := rand.Read(random[:]); err != nil {
			return err
		}
		env.Setenv("LOOPBACK", net.IPv4(127, random[0]|1, random[1], random[2]|1).String())
	}
	cert, key := cp.ServingCert(tb, "token-authorizer", net.ParseIP(env.Getenv("LOOPBACK")))
	for suffix, data := range map[string][]byte{".crt": cert, ".key": key, ".ca": cp.CAData} {
		if err := os.WriteFile(filepath.Join(env.WorkDir, name+suffix), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// cmdRequest does what an agent does: "request KUBECONFIG CLUSTER AGENT
// [USER GROUP]" makes the ManagedCluster and a certificate signing request.
// The requester is the bootstrap ServiceAccount unless a user is named.
func cmdRequest(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 3 && len(args) != 5 {
		ts.Fatalf("usage: request kubeconfig cluster agent [user group]")
	}
	config := load(ts, args[0])
	config.Impersonate = rest.ImpersonationConfig{
		UserName: names.BootstrapServiceAccountUser,
		Groups:   []string{"system:serviceaccounts:" + names.OperatorNamespace, "system:authenticated"},
	}
	if len(args) == 5 {
		config.Impersonate = rest.ImpersonationConfig{UserName: args[3], Groups: []string{args[4]}}
	}
	c, err := client.New(config, client.Options{Scheme: scheme.New()})
	ts.Check(err)
	cluster, agent := args[1], args[2]
	ctx := context.Background()
	err = c.Create(ctx, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}})
	ts.Check(client.IgnoreAlreadyExists(err))
	ts.Check(c.Create(ctx, signingRequest(ts, cluster, agent)))
}

// cmdIssued does what an agent does with its certificate: "issued HUB SPOKE
// CLUSTER AGENT [SERVER]" stores it in the hub kubeconfig Secret of the managed
// cluster. SERVER is another address of the hub.
func cmdIssued(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 4 && len(args) != 5 {
		ts.Fatalf("usage: issued hub spoke cluster agent [server]")
	}
	ctx := context.Background()
	hubConfig := load(ts, args[0])
	hub, err := client.New(hubConfig, client.Options{Scheme: scheme.New()})
	ts.Check(err)
	spoke, err := client.New(load(ts, args[1]), client.Options{Scheme: scheme.New()})
	ts.Check(err)
	cluster, agent := args[2], args[3]
	var csr certificatesv1.CertificateSigningRequest
	ts.Check(hub.Get(ctx, client.ObjectKey{Name: cluster + "-" + agent}, &csr))
	key, err := os.ReadFile(ts.MkAbs(cluster + "-" + agent + ".key"))
	ts.Check(err)
	h := kubeconfig.Hub{ClusterName: names.BootstrapKubeconfigCluster}
	h.Cluster.Server, h.Cluster.CertificateAuthorityData = hubConfig.Host, hubConfig.CAData
	if len(args) == 5 {
		h.Cluster.Server = args[4]
	}
	data, err := h.Encode(clientcmdapi.AuthInfo{ClientCertificate: names.KeyTLSCert, ClientKey: names.KeyTLSKey})
	ts.Check(err)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.AgentNamespace, Name: names.HubKubeconfigSecret},
		Data: map[string][]byte{
			names.KeyKubeconfig: data, names.KeyTLSCert: csr.Status.Certificate, names.KeyTLSKey: key,
			names.KeyClusterName: []byte(cluster), names.KeyAgentName: []byte(agent),
		},
	}
	ts.Check(client.IgnoreNotFound(spoke.Delete(ctx, secret.DeepCopy())))
	ts.Check(spoke.Create(ctx, secret))
}

func signingRequest(ts *testscript.TestScript, cluster, agent string) *certificatesv1.CertificateSigningRequest {
	key, keyPEM, err := pemutil.NewKey()
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(cluster+"-"+agent+".key"), keyPEM, 0o600))
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{
		CommonName:   names.AgentUser(cluster, agent),
		Organization: []string{names.ClusterGroup(cluster), names.GroupManagedClusters},
	}}, key)
	ts.Check(err)
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: cluster + "-" + agent, Labels: map[string]string{names.LabelClusterName: cluster}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pemutil.EncodeRequest(der), SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages: []certificatesv1.KeyUsage{
				certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth,
			},
		},
	}
}

// cmdSnapshot writes the version of every object of a cluster to a file:
// "snapshot KUBECONFIG FILE". Two of them are equal if nothing was written.
func cmdSnapshot(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: snapshot kubeconfig file")
	}
	config := load(ts, args[0])
	var lines []string
	// A young control plane writes its own objects for some seconds.
	err := wait.PollUntilContextTimeout(context.Background(), 2*time.Second, time.Minute, true, func(ctx context.Context) (bool, error) {
		now, err := snapshot(ctx, config)
		settled := slices.Equal(lines, now) && slices.ContainsFunc(now, func(line string) bool {
			// The controllers that start last make it.
			return strings.HasPrefix(line, "configmaps. kube-public/kube-root-ca.crt ")
		})
		lines = now
		return settled, err
	})
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(strings.Join(lines, "\n")+"\n"), 0o600))
}

// restless are resources that the control plane itself writes all the time.
var restless = []string{"leases", "events", "endpoints", "endpointslices", "flowschemas", "prioritylevelconfigurations", "apiservices", "componentstatuses", "ipaddresses"}

func snapshot(ctx context.Context, config *rest.Config) ([]string, error) {
	config.QPS = -1
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	c, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	lists, err := disco.ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") || slices.Contains(restless, r.Name) {
				continue
			}
			items, err := c.Resource(gv.WithResource(r.Name)).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, err
			}
			for _, item := range items.Items {
				if item.Namespace == metav1.NamespaceSystem {
					continue // the controller manager's, not ours
				}
				lines = append(lines, fmt.Sprintf("%s.%s %s/%s %s", r.Name, gv.Group, item.Namespace, item.Name, item.ResourceVersion))
			}
		}
	}
	slices.Sort(lines)
	return lines, nil
}

// cmdCode runs a command that has to end with an exit code: "code CODE
// COMMAND...".
func cmdCode(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: code number command...")
	}
	if code := exitCode(ts, args[1:]); code != args[0] {
		ts.Fatalf("%v ended with %s, not with exit code %s", args[1:], code, args[0])
	}
}

// cmdHarmless runs a command, however it ends, whose output must hold nothing but characters
// that are seen and ends of lines: "harmless COMMAND...".
func cmdHarmless(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) == 0 {
		ts.Fatalf("usage: harmless command...")
	}
	code := exitCode(ts, args)
	for _, stream := range []string{"stdout", "stderr"} {
		text := ts.ReadFile(stream)
		if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !strconv.IsPrint(r) }); i >= 0 {
			ts.Fatalf("%v (exit code %s) prints %q to %s", args, code, text[max(0, i-40):min(len(text), i+40)], stream)
		}
	}
}

// cmdTimeout runs a command that has to time out and to say what it waits for:
// "timeout PATTERN COMMAND...". On a busy machine a short time is over before the
// command knows, so it is given more until it says so.
func cmdTimeout(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: timeout pattern command...")
	}
	words, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	for limit := 2 * time.Second; ; limit *= 4 {
		code := exitCode(ts, append(slices.Clone(args[1:]), "--timeout", limit.String()))
		switch {
		case code == "124" && words.MatchString(ts.ReadFile("stderr")):
			return
		case limit > time.Minute:
			ts.Fatalf("%v ended with %s, and does not say %q", args[1:], code, words)
		}
	}
}

func exitCode(ts *testscript.TestScript, command []string) string {
	if err := ts.Exec(command[0], command[1:]...); err != nil {
		return strings.TrimPrefix(err.Error(), "exit status ")
	}
	return "0"
}

func load(ts *testscript.TestScript, file string) *rest.Config {
	config, err := clientcmd.BuildConfigFromFlags("", ts.MkAbs(file))
	ts.Check(err)
	return config
}
