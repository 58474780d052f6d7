package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/egress"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node/kubelet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node/sandbox"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

const readyPoll = 100 * time.Millisecond

// admin returns the administrator's client. It sends no request before its first use.
func (s *supervisor) admin() (client.Client, error) {
	config, err := s.plane.Access().ConfigFor(controlplane.AdminUser, controlplane.AdminGroup)
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{})
}

// serveEgress starts the proxy, before the API server that uses it.
func (s *supervisor) serveEgress(ctx context.Context) error {
	admin, err := s.admin()
	if err != nil {
		return err
	}
	listener, err := listenUnix(s.layout.controlPlane(), egressSocket)
	if err != nil {
		return err
	}
	proxy := egress.Proxy{
		Resolve: egress.Resolver{Client: admin}.Resolve,
		Log:     s.options.Log.WithName(componentEgress),
	}
	s.running.Go(func() {
		if err := proxy.Serve(ctx, listener); err != nil {
			s.options.Log.Error(err, "The egress proxy ended")
			s.component(componentEgress, func(c *Component) { c.Message = err.Error() })
		}
	})
	return nil
}

// listenUnix listens on a socket in a directory whose path may be longer than
// that of a socket can be.
func listenUnix(dir, name string) (net.Listener, error) {
	if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }() // only a way to the directory
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), name)})
	if err != nil {
		return nil, fmt.Errorf("egress socket: %w", err)
	}
	// By its end the short path names another file.
	listener.SetUnlinkOnClose(false)
	return listener, nil
}

// node runs the cluster's node until it ends.
func (s *supervisor) node(ctx context.Context) error {
	addresses, err := node.ReserveAddresses(ctx, string(s.layout))
	if err != nil {
		return err
	}
	n, err := s.newNode(addresses)
	if err != nil {
		return errors.Join(err, addresses.Listener.Close())
	}
	s.update(func(state *State) { state.NodeIP = addresses.NodeIP() })
	s.component(componentNode, func(c *Component) { c.PID, c.Message = os.Getpid(), "" })
	return n.Run(ctx)
}

func (s *supervisor) newNode(addresses *node.Addresses) (*node.Node, error) {
	config, err := s.plane.Access().ConfigFor(node.UserName(s.spec.Name), node.Group)
	if err != nil {
		return nil, err
	}
	ca := s.plane.Authority()
	cert, key, err := ca.Server(s.options.Clock.Now(), s.spec.Name, []string{s.spec.Name}, []net.IP{net.ParseIP(addresses.NodeIP())})
	if err != nil {
		return nil, err
	}
	return node.New(node.Config{
		Name: s.spec.Name, Dir: s.layout.node(), Version: KubeletVersion,
		API: config, ServerHost: "127.0.0.1", ServerPort: strconv.Itoa(s.plane.Port()),
		Server:   kubelet.Config{Client: controlplane.KubeletClientUser, ClientCA: ca.PEM(), Cert: cert, Key: key},
		Images:   s.spec.Images,
		Launcher: sandbox.Launcher{Group: s.group, Self: s.options.Container},
		Clock:    s.options.Clock, Log: s.options.Log.WithName(componentNode),
	}, addresses)
}

// KubeletVersion is the version that local nodes report: the Kubernetes version that
// they are written for.
const KubeletVersion = "v1.36.0-local"

// awaitNode returns when Pods can be made and are scheduled.
func (s *supervisor) awaitNode(ctx context.Context, admin client.Client) error {
	for {
		ok, what := schedulable(ctx, admin, s.spec.Name)
		if ok {
			return nil
		}
		s.update(func(state *State) { state.Message = "waiting for " + what })
		if !pause.For(ctx, s.options.Clock, readyPoll) {
			return fmt.Errorf("the cluster does not become ready: still waiting for %s", what)
		}
	}
}

func schedulable(ctx context.Context, c client.Client, name string) (ok bool, waitingFor string) {
	var n corev1.Node
	if err := c.Get(ctx, client.ObjectKey{Name: name}, &n); err != nil {
		return false, "the node to be registered"
	}
	for _, taint := range n.Spec.Taints {
		if taint.Effect == corev1.TaintEffectNoSchedule {
			return false, "the node's taint " + taint.Key + " to be removed"
		}
	}
	key := client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "default"}
	if err := c.Get(ctx, key, &corev1.ServiceAccount{}); err != nil {
		return false, "the default service account"
	}
	return true, ""
}

// publishClusterInfo publishes the API server's address and CA to unauthenticated
// clients, as kubeadm does; join commands rely on it.
func (s *supervisor) publishClusterInfo(ctx context.Context, c client.Client) error {
	kubeconfig, err := clientcmd.Write(clientcmdapi.Config{Clusters: map[string]*clientcmdapi.Cluster{
		"": {Server: s.plane.URL(), CertificateAuthorityData: s.plane.Authority().PEM()},
	}})
	if err != nil {
		return fmt.Errorf("cluster-info: %w", err)
	}
	meta := metav1.ObjectMeta{Namespace: names.ClusterInfoNamespace, Name: "ocm-local:cluster-info"}
	for _, object := range []client.Object{
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: names.ClusterInfoNamespace, Name: names.ClusterInfoConfigMap,
				Annotations: map[string]string{names.AnnotationSharedMachine: "true"},
			},
			Data: map[string]string{"kubeconfig": string(kubeconfig)},
		},
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"configmaps"},
			ResourceNames: []string{names.ClusterInfoConfigMap}, Verbs: []string{"get"},
		}}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "system:anonymous"}},
		},
	} {
		if err := s.ensure(ctx, c, object); err != nil {
			return fmt.Errorf("cluster-info: %w", err)
		}
	}
	return nil
}

// ensure creates an object. The namespace may not be there yet right after the
// start of an API server.
func (s *supervisor) ensure(ctx context.Context, c client.Client, object client.Object) error {
	for {
		err := c.Create(ctx, object)
		if err == nil || apierrors.IsAlreadyExists(err) {
			return nil
		}
		if !apierrors.IsNotFound(err) || !pause.For(ctx, s.options.Clock, readyPoll) {
			return err
		}
	}
}
