package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node/kubelet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node/sandbox"
)

// retryDelay is how long after a failed call it is tried again.
const retryDelay = time.Second

// Config says what node to be.
type Config struct {
	// Name of the Node.
	Name string
	// Dir is where Pods have their volumes and logs; it is private.
	Dir string
	// Version is the kubelet version that the node reports.
	Version string
	// API is the connection, as UserName(Name) in Group.
	API *rest.Config
	// ServerHost and ServerPort are where Pods reach the API server.
	ServerHost, ServerPort string
	// Server is the TLS interface for the API server, but for Logs and Clock.
	Server kubelet.Config
	// Images maps the images of containers to executables.
	Images Images
	// Launcher starts containers.
	Launcher sandbox.Launcher
	// Clock and Log are the usual.
	Clock clock.WithTicker
	Log   logr.Logger
}

// Group is the group of all nodes.
const Group = "system:nodes"

// UserName is who the node called name is.
func UserName(name string) string { return "system:node:" + name }

// Node is a running node.
type Node struct {
	config    Config
	addresses *Addresses
	api       api
	sink      record.EventSink
	events    record.EventRecorder
	probes    *http.Client

	mu      sync.Mutex
	workers map[types.UID]*worker
	running sync.WaitGroup
}

// New returns a node on a reserved range of addresses. It does nothing yet.
func New(config Config, addresses *Addresses) (*Node, error) {
	c, err := client.NewWithWatch(config.API, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("client of the node: %w", err)
	}
	events, err := corev1client.NewForConfig(config.API)
	if err != nil {
		return nil, fmt.Errorf("client of the node: %w", err)
	}
	return &Node{
		config:    config,
		addresses: addresses,
		api:       api{c},
		sink:      &corev1client.EventSinkImpl{Interface: events.Events(metav1.NamespaceAll)},
		workers:   map[types.UID]*worker{},
		probes: &http.Client{
			Transport: &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{}).DialContext},
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse
			},
		},
	}, nil
}

// Run is the node's life. It returns when ctx is done and every container has
// ended, or with an error when the node could not begin. Pods stay in the API,
// for the next run to start again. It closes the listener of the addresses.
func (n *Node) Run(ctx context.Context) error {
	defer func() { _ = n.addresses.Listener.Close() }() // the server closes it too
	if err := os.MkdirAll(n.podsDir(), 0o700); err != nil {
		return err
	}
	if err := n.registerUntil(ctx); err != nil {
		return err
	}
	events := record.NewBroadcaster(record.WithContext(context.WithoutCancel(ctx)))
	defer events.Shutdown()
	events.StartRecordingToSink(n.sink)
	n.events = events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "kubelet", Host: n.config.Name})
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(errStopped)
	var background sync.WaitGroup
	background.Go(func() { n.beat(ctx) })
	background.Go(func() {
		if err := n.serve(ctx); err != nil {
			cancel(err)
		}
	})
	background.Go(func() { n.watchPods(ctx) })
	<-ctx.Done()
	background.Wait()
	n.running.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) && !errors.Is(err, errStopped) {
		return err
	}
	return nil
}

// registerUntil tries until it works: right after its start an API server still
// refuses some requests.
func (n *Node) registerUntil(ctx context.Context) error {
	for {
		err := n.register(ctx)
		if err == nil {
			return nil
		}
		n.config.Log.Info("The Node could not be registered", "error", err.Error())
		if !pause.For(ctx, n.config.Clock, retryDelay) {
			return fmt.Errorf("register node %s: %w", n.config.Name, err)
		}
	}
}

// serve answers the API server.
func (n *Node) serve(ctx context.Context) error {
	config := n.config.Server
	config.Logs, config.Clock = n, n.config.Clock
	tlsConfig, err := config.TLS()
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:           config.Handler(),
		TLSConfig:         tlsConfig,
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          nil,
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ServeTLS(n.addresses.Listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve logs: %w", err)
	}
	return nil
}

// watchPods hands every change of the node's Pods to their workers.
func (n *Node) watchPods(ctx context.Context) {
	selector := fields.OneTermEqualSelector("spec.nodeName", n.config.Name)
	options := func(o metav1.ListOptions) *client.ListOptions {
		return &client.ListOptions{FieldSelector: selector, Raw: &o}
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				list := &corev1.PodList{}
				return list, n.api.List(ctx, list, options(o))
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return n.api.Watch(ctx, &corev1.PodList{}, options(o))
			},
		},
		ObjectType: &corev1.Pod{},
		Handler: cache.ResourceEventHandlerDetailedFuncs{
			AddFunc:    func(object any, _ bool) { n.update(ctx, object) },
			UpdateFunc: func(_, object any) { n.update(ctx, object) },
			DeleteFunc: n.forget,
		},
	})
	var sweep sync.WaitGroup
	sweep.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			n.sweep()
		}
	})
	informer.RunWithContext(ctx)
	sweep.Wait()
}

func (n *Node) podsDir() string { return filepath.Join(n.config.Dir, "pods") }
