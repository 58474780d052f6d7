package e2e_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"text/template"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

// msaImage and msaTag are upstream's agent, which runs as a Pod on kind only.
const (
	msaImage = "kubectl-ocm/managed-serviceaccount"
	msaTag   = "e2e"
)

// TestManagedServiceAccount runs upstream's managed-serviceaccount as it was
// released, an add-on that nobody wrote for us.
//
// With driver csr both of its parts run, and its manager deploys the agent by a
// ManifestWork; built with an older addon-framework, it speaks the older version of
// the add-on API. That manager binds permissions to the user of a certificate
// whatever the driver is, so with driver token upstream leaves the hub's part to an
// AddOnTemplate, which our add-on manager makes the add-on from.
func TestManagedServiceAccount(t *testing.T) {
	t.Parallel()
	a := &addOn{fleet: fleet, name: "managed-serviceaccount", hub: fleet.client(t, "hub")}
	a.plant(t, "authentication.open-cluster-management.io_managedserviceaccounts.yaml", "hub-clusterrole.yaml")
	eventually(t, "the hub serves ManagedServiceAccounts", func(ctx context.Context) error {
		return a.hub.List(ctx, managedServiceAccounts())
	})

	t.Run("driver csr", func(t *testing.T) {
		definition := &addonv1beta1.ClusterManagementAddOn{
			ObjectMeta: metav1.ObjectMeta{Name: a.name},
			Spec:       addonv1beta1.ClusterManagementAddOnSpec{InstallStrategy: addonv1beta1.InstallStrategy{Type: addonv1beta1.AddonInstallStrategyManual}},
		}
		if err := a.hub.Create(t.Context(), definition); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = a.hub.Delete(context.WithoutCancel(t.Context()), definition) })
		manager := exec.CommandContext(t.Context(), controlplane.Program(t, "msa"), "manager", "--kubeconfig="+kubeconfigOf(t, "hub"),
			"--metrics-bind-address=0", "--health-probe-bind-address=0", "--agent-image-name="+msaImage+":"+msaTag)
		manager.Env = append(os.Environ(), "NAMESPACE=default")
		start(t, manager)
		// Its manifests bring the namespace, so it goes with them.
		own := *a
		own.namespace = "e2e-msa"
		own.add(t, "cluster1")
		own.awaitAgent(t, "cluster1")
		own.runServiceAccountAgent(t, "cluster1", names.KeyTLSCert)
		own.useManagedServiceAccount(t, "cluster1")
	})
	t.Run("driver token", func(t *testing.T) {
		a.plant(t, "addon-manager-clusterrolebinding.yaml", "addontemplate.yaml", "clustermanagementaddon.yaml")
		a.grant(t, "managed-serviceaccount-addon-agent")
		a.add(t, "cluster2")
		a.awaitAgent(t, "cluster2")
		a.runServiceAccountAgent(t, "cluster2", names.KeyToken)
		a.useManagedServiceAccount(t, "cluster2")
	})
}

// plant applies files of the release to the hub until the end of the test. On local
// clusters, the template has the agent's Pod run nowhere, see runServiceAccountAgent.
func (a *addOn) plant(t *testing.T, files ...string) {
	t.Helper()
	for _, file := range files {
		manifest, err := os.ReadFile(filepath.Join(controlplane.Program(t, "msa")+"-deploy", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, obj := range parse(t, rendered(t, a.name, string(manifest))) {
			if err := a.hub.Create(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = a.hub.Delete(context.WithoutCancel(t.Context()), obj) })
		}
	}
}

// grant lets the add-on's template bind a ClusterRole in the namespaces of clusters. The
// release for OCM, which has no grants, gives the add-on manager the role itself instead.
func (a *addOn) grant(t *testing.T, role string) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: "e2e-grant-" + a.name}
	for _, obj := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{addonv1beta1.GroupName}, Resources: []string{"hubpermissions/currentcluster"},
			ResourceNames: []string{a.name + ":clusterrole:" + role}, Verbs: []string{"bind"},
		}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: names.HubNamespace, Name: names.HubAddOnManagerServiceAccount}},
		},
	} {
		if err := a.hub.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = a.hub.Delete(context.WithoutCancel(t.Context()), obj) })
	}
}

// rendered is a file of the release, a template of its chart with values filled in.
func rendered(t *testing.T, name, text string) string {
	t.Helper()
	if !strings.Contains(text, ".Values") {
		return text
	}
	chart, err := template.New(name).Funcs(template.FuncMap{
		"default": func(fallback any, value string) string { return cmp.Or(value, fmt.Sprint(fallback)) },
		"int":     strconv.Atoi,
	}).Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	replicas := "1"
	if fleet.dir != "" {
		replicas = "0"
	}
	var out strings.Builder
	if err := chart.Execute(&out, map[string]any{
		"Values": map[string]string{"hubDeployMode": "AddOnTemplate", "addOnTemplateName": name, "replicas": replicas, "image": msaImage, "tag": msaTag},
		"Chart":  map[string]string{"Version": "0.8.0"},
	}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// runServiceAccountAgent runs the add-on's agent with the credential that it gets on a
// cluster. No Pod of a local cluster could: the agent listens on every address, and the
// Pods have the network of the host. On kind, its Pod runs.
func (a *addOn) runServiceAccountAgent(t *testing.T, cluster, credential string) {
	t.Helper()
	managed := fleet.client(t, cluster)
	var secret *corev1.Secret
	eventually(t, "a credential of "+a.name, func(ctx context.Context) (err error) {
		if secret, err = a.secret(ctx, managed); err == nil && len(secret.Data[credential]) == 0 {
			err = errors.New("it is incomplete")
		}
		return err
	})
	if fleet.dir == "" {
		return
	}
	// What a Pod would see of the Secret.
	mount := t.TempDir()
	for key, data := range secret.Data {
		if err := os.WriteFile(filepath.Join(mount, key), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hubKubeconfig := filepath.Join(mount, names.KeyKubeconfig)
	agent := exec.CommandContext(t.Context(), controlplane.Program(t, "msa"), "agent", "--cluster-name="+cluster,
		"--kubeconfig="+hubKubeconfig, "--spoke-kubeconfig="+kubeconfigOf(t, cluster),
		"--lease-health-check=true", "--metrics-bind-address=0", "--health-probe-bind-address=0")
	agent.Env = append(os.Environ(), "NAMESPACE="+a.agentNamespace(), "HUB_KUBECONFIG="+hubKubeconfig)
	isolate(t, agent, address(t, "hub"), address(t, cluster))
	start(t, agent)
}

// useManagedServiceAccount makes a ManagedServiceAccount on the hub, which brings a token
// for the managed cluster.
func (a *addOn) useManagedServiceAccount(t *testing.T, cluster string) {
	t.Helper()
	account := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"rotation": map[string]any{}}}}
	account.SetGroupVersionKind(managedServiceAccountKind())
	account.SetNamespace(cluster)
	account.SetName("e2e-msa")
	if err := a.hub.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.hub.Delete(context.WithoutCancel(t.Context()), account) })
	var issued corev1.Secret
	eventually(t, "a token of the ManagedServiceAccount", func(ctx context.Context) error {
		return a.hub.Get(ctx, client.ObjectKeyFromObject(account), &issued)
	})
	config := fleet.config(t, cluster)
	config.CertData, config.KeyData, config.BearerToken = nil, nil, string(issued.Data["token"])
	review := &authenticationv1.SelfSubjectReview{}
	if err := newClient(t, config).Create(t.Context(), review); err != nil {
		t.Fatal(err)
	}
	if want := names.ServiceAccountUser(a.agentNamespace(), account.GetName()); review.Status.UserInfo.Username != want {
		t.Errorf("the token is of %s, want %s", review.Status.UserInfo.Username, want)
	}
	a.awaitCondition(t, cluster, addonv1beta1.ManagedClusterAddOnConditionAvailable)
}

func managedServiceAccountKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "authentication.open-cluster-management.io", Version: "v1beta1", Kind: "ManagedServiceAccount"}
}

func managedServiceAccounts() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	kind := managedServiceAccountKind()
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}

// kubeconfigOf is a file with the administrator's kubeconfig of one cluster.
func kubeconfigOf(t *testing.T, cluster string) string {
	t.Helper()
	return writeFile(t, singleContext(t, cluster))
}

// address is where a cluster's API server listens.
func address(t *testing.T, cluster string) string {
	t.Helper()
	_, address, ok := strings.Cut(fleet.config(t, cluster).Host, "://")
	if !ok {
		t.Fatal("no URL: ", fleet.config(t, cluster).Host)
	}
	return address
}

// start runs a program until the end of the test, and shows what it printed
// when the test failed.
func start(t *testing.T, command *exec.Cmd) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	log, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	command.Stdout, command.Stderr = log, log
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- command.Wait() }()
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		err := <-done
		if t.Failed() {
			data, _ := os.ReadFile(path)
			t.Log(fmt.Sprint(command.Args), "ended with", err, "and printed:\n"+string(data))
		}
		_ = log.Close()
	})
}
