package hubclient_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/hubclient"
)

// TestRefusedConnections has a hub that refuses connections: informers must see
// that when they resume a watch, which they then do not begin anew, and must not when
// they begin with a list, because they would sleep without looking at their context.
func TestRefusedConnections(t *testing.T) {
	t.Parallel()
	closed := serve(t)
	authority := pemutil.EncodeCertificate(closed.Certificate().Raw)
	closed.Close()
	hub := kubeconfig.Hub{ClusterName: "hub", Cluster: clientcmdapi.Cluster{Server: closed.URL, CertificateAuthorityData: authority}}
	conn, err := hubclient.New(hub, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	static, err := hubclient.Static(hub, t.TempDir(), "test")
	if err != nil {
		t.Fatal(err)
	}
	for name, config := range map[string]*rest.Config{"rotating": conn.Config(), "static": static} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			for _, lists := range []bool{false, true} {
				_, err = client.CoreV1().Secrets("").Watch(t.Context(), metav1.ListOptions{SendInitialEvents: &lists})
				if err == nil || !strings.Contains(err.Error(), "connection refused") {
					t.Fatalf("got %v", err)
				}
				if utilnet.IsConnectionRefused(err) == lists {
					t.Errorf("sendInitialEvents=%v: the reflector sees a refused connection: %v", lists, !lists)
				}
			}
		})
	}
}
