// Package webhook_test holds the tests of the webhook as a whole: a real API
// server, the operator with its issuer and the webhook's role, each with the
// rights that our manifests give it.
package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/controller"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/egress"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/clustermanager"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/drivers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/servingcert"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controllers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/webhook/conversion"
)

const (
	patience = await.Patience
	// tick is the time between the requests of a load.
	tick = 50 * time.Millisecond
)

// hub is a control plane with the operator running.
type hub struct {
	*controlplane.ControlPlane

	admin client.WithWatch
	// ip is the address of the webhook's pod.
	ip string
	// stopOperator ends the operator and the issuer.
	stopOperator func()
}

// newHub installs what init installs and runs the operator. The API server
// reaches Services as that of a local cluster does.
func newHub(t *testing.T, rules servingcert.Rules) *hub {
	t.Helper()
	return newHubOn(t, controlplane.Lease(t, controlplane.WithEgress()), rules)
}

func newHubOn(t *testing.T, cp *controlplane.ControlPlane, rules servingcert.Rules) *hub {
	t.Helper()
	var reader atomic.Pointer[client.Reader]
	serveEgress(t, cp.EgressSocket(), &reader)
	admin, err := client.NewWithWatch(cp.Config(t), client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	all := client.Reader(admin)
	reader.Store(&all)
	h := &hub{ControlPlane: cp, admin: admin, ip: freeAddress(t)}
	rendered, err := manifests.RenderHubOperator(manifests.HubOperator{Version: "1.0.0", Operator: manifests.Pod{Image: "operator:v1"}})
	if err != nil {
		t.Fatal(err)
	}
	installation.Apply(t, admin, "ocm.init", rendered)
	h.runOperator(t, rules)
	return h
}

func serveEgress(t *testing.T, socket string, reader *atomic.Pointer[client.Reader]) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	proxy := egress.Proxy{Log: logr.Discard(), Resolve: func(ctx context.Context, address string) (string, error) {
		if r := reader.Load(); r != nil {
			return egress.Resolver{Client: *r}.Resolve(ctx, address)
		}
		return address, nil
	}}
	background(t, func(ctx context.Context) error { return proxy.Serve(ctx, listener) })
}

// background runs something until the function that it returns is called, or
// the test ends.
func background(t *testing.T, run func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// freeAddress is a loopback address that nobody serves a webhook at.
func freeAddress(t *testing.T) string {
	t.Helper()
	for {
		ip := net.IPv4(127, byte(rand.IntN(250)+1), byte(rand.IntN(250)+1), byte(rand.IntN(250)+1)).String()
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", fmt.Sprintf("%s:%d", ip, names.AddOnWebhookPort))
		if err == nil {
			_ = listener.Close()
			return ip
		}
	}
}

func (h *hub) runOperator(t *testing.T, rules servingcert.Rules) {
	t.Helper()
	connection := h.ConfigForAccount(t, names.OperatorNamespace, names.ClusterManagerOperator)
	objects, err := clustermanager.CacheOptions()
	if err != nil {
		t.Fatal(err)
	}
	options := manager.Options{Cache: objects, Logger: logr.Discard()}
	h.stopOperator = controllers.Start(t, connection, options, func(_ context.Context, mgr manager.Manager) error {
		return errors.Join(
			clustermanager.Setup(mgr, clustermanager.Config{
				Namespace: names.OperatorNamespace, Image: "operator:v1", Version: "1.0.0", Replicas: 1,
				ControlPlane: labels.Everything(), Drivers: drivers.All(), Clock: clock.RealClock{},
			}),
			servingcert.Setup(mgr, servingcert.Config{
				Name: "webhook.servingcert", Namespace: names.HubNamespace, Objects: servingcert.WebhookObjects(),
				After: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.HubNamespace}},
				Rules: rules, CRDs: conversion.CRDs(), Clock: clock.RealClock{},
			}),
			servingcert.Setup(mgr, servingcert.Config{
				Name: "tokenauthorizer.servingcert", Namespace: names.HubNamespace, Objects: tokenAuthorizerObjects(),
				After: &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: names.HubNamespace, Name: names.TokenAuthorizer}},
				Rules: servingcert.DefaultRules(names.TokenAuthorizer, names.HubNamespace), Clock: clock.RealClock{},
			}))
	})
}

// runWebhook starts the role as its pod would and waits until the Service leads
// to it. It returns what ends it.
func (h *hub) runWebhook(t *testing.T) (stop func()) {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	data := h.KubeconfigFor(t, names.ServiceAccountUser(names.HubNamespace, names.HubAddOnWebhookServiceAccount),
		"system:serviceaccounts", "system:serviceaccounts:"+names.HubNamespace, "system:authenticated")
	if err := os.WriteFile(kubeconfig, data, 0o600); err != nil {
		t.Fatal(err)
	}
	stop = background(t, func(ctx context.Context) error {
		cmd := controller.New()
		cmd.SetArgs([]string{
			"webhook", "--kubeconfig=" + kubeconfig, "--bind-address=" + h.ip, "--namespace=" + names.HubNamespace,
			"--metrics-port=0",
		})
		return cmd.ExecuteContext(ctx)
	})
	eventually(t, func(ctx context.Context) string {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+h.ip+":8000/readyz", nil)
		if err != nil {
			return err.Error()
		}
		response, err := (&http.Client{Timeout: 10 * time.Second}).Do(request)
		if err != nil {
			return err.Error()
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode != http.StatusOK {
			return response.Status
		}
		return ""
	})
	h.setReady(t, corev1.ConditionTrue)
	h.expectConversion(t, metav1.ConditionFalse, clustermanager.ReasonAddOnWebhookFunctional)
	return stop
}

// setReady does what a kubelet would for the webhook's pod.
func (h *hub) setReady(t *testing.T, status corev1.ConditionStatus) {
	t.Helper()
	eventually(t, func(ctx context.Context) string {
		var pods corev1.PodList
		app := client.MatchingLabels{"app": names.HubAddOnWebhookDeployment(names.ClusterManagerName)}
		if err := h.admin.List(ctx, &pods, client.InNamespace(names.HubNamespace), app); err != nil {
			return err.Error()
		}
		if len(pods.Items) == 0 {
			return "no pod of the webhook"
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, h.ip
			pod.Status.PodIPs = []corev1.PodIP{{IP: h.ip}}
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
			if err := h.admin.Status().Update(ctx, pod); err != nil {
				return err.Error()
			}
		}
		return ""
	})
}

// expectConversion waits for what the ClusterManager says about conversion.
func (h *hub) expectConversion(t *testing.T, status metav1.ConditionStatus, reason string) {
	t.Helper()
	eventually(t, func(ctx context.Context) string {
		cm := &operatorv1.ClusterManager{}
		if err := h.admin.Get(ctx, client.ObjectKey{Name: names.ClusterManagerName}, cm); err != nil {
			return err.Error()
		}
		c := apimeta.FindStatusCondition(cm.Status.Conditions, clustermanager.ConditionHubAddOnWebhookDegraded)
		if c == nil || c.Status != status || c.Reason != reason {
			return fmt.Sprintf("the condition is %+v", c)
		}
		return ""
	})
}

// trusted is the bundle in a CRD.
func (h *hub) trusted(ctx context.Context) ([]byte, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	err := h.admin.Get(ctx, client.ObjectKey{Name: conversion.CRDs()[1]}, &crd)
	if err != nil || crd.Spec.Conversion == nil || crd.Spec.Conversion.Webhook == nil {
		return nil, err
	}
	return crd.Spec.Conversion.Webhook.ClientConfig.CABundle, nil
}

// eventually waits until done returns "", which otherwise is what is missing.
func eventually(t *testing.T, done func(ctx context.Context) string) {
	t.Helper()
	await.Completion(t, patience, done)
}

// step is a part of a test that goes on where the one before ended.
type step struct {
	name string
	run  func(t *testing.T)
}

func inOrder(t *testing.T, steps ...step) {
	t.Helper()
	for _, s := range steps {
		t.Run(s.name, s.run)
	}
}
