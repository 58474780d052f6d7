package authenticator

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	local "github.com/kubectl-ocm/kubectl-ocm/pkg/local/controlplane"
)

// Files in the directory of an authenticator. The names of certificate and key
// are the program's.
const (
	certificateFile = "cert.pem"
	keyFile         = "key.pem"
	webhookFile     = "webhook.kubeconfig"
	entriesFile     = "access-entries.json"
	hubFile         = "hub.kubeconfig"
	configFile      = "config.json"
	logFile         = "log"
)

// writeCertificate makes a certificate for the program, which takes it if it finds
// one, and returns who signed it.
func (a *Authenticator) writeCertificate() (*x509.CertPool, error) {
	now := clock.RealClock{}.Now()
	authority, err := local.OpenAuthority(a.dir, now)
	if err != nil {
		return nil, err
	}
	certificate, key, err := authority.Server(now, program, nil, []net.IP{net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority.PEM())
	return trusted, errors.Join(
		os.WriteFile(a.file(certificateFile), certificate, 0o600),
		os.WriteFile(a.file(keyFile), key, 0o600),
	)
}

// writeWebhook writes the kubeconfig that the API server uses to reach the webhook.
func (a *Authenticator) writeWebhook(front *httptest.Server) error {
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["webhook"] = &clientcmdapi.Cluster{
		Server: front.URL + "/authenticate", CertificateAuthorityData: pemutil.EncodeCertificate(front.Certificate().Raw),
	}
	kubeconfig.AuthInfos["webhook"] = &clientcmdapi.AuthInfo{}
	kubeconfig.Contexts["webhook"] = &clientcmdapi.Context{Cluster: "webhook", AuthInfo: "webhook"}
	kubeconfig.CurrentContext = "webhook"
	return clientcmd.WriteToFile(*kubeconfig, a.WebhookFile)
}

// writeConfig writes the program's configuration. Only a file, no flag, can say
// that access entries go by unique ids.
func (a *Authenticator) writeConfig(port int) error {
	config, err := json.Marshal(map[string]any{
		"clusterID": a.clusterName(),
		"server": map[string]any{
			"partition": a.partition(), "address": "127.0.0.1", "port": port,
			"stateDir": a.dir, "kubeconfigPregenerated": true, "kubeconfig": a.file(hubFile),
			"backendMode":     []string{"DynamicFile", "EKSConfigMap"},
			"dynamicfilepath": a.file(entriesFile), "dynamicfileUserIDStrict": true,
			"reservedPrefixConfig": []any{map[string]any{
				"backendmode": "DynamicFile", "usernamePrefixReserveList": []string{"aws:", "iam:", "amazon:", "system:", "eks:"},
			}},
		},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(a.file(configFile), config, 0o600)
}

func (a *Authenticator) file(name string) string { return filepath.Join(a.dir, name) }
