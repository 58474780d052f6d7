package authenticator

import (
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
)

// life of the webhook's certificate is far longer than any test.
const life = 24 * time.Hour

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

// writeWebhook makes a certificate for the webhook, which the program takes if it
// finds one, and the kubeconfig by which the API server reaches it at address.
func (a *Authenticator) writeWebhook(address string) error {
	key, keyPEM, err := pemutil.NewKey()
	if err != nil {
		return err
	}
	now := clock.RealClock{}.Now()
	template := &x509.Certificate{
		Subject:      pkix.Name{CommonName: "aws-iam-authenticator"},
		SerialNumber: big.NewInt(1),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:    now.Add(-life),
		NotAfter:     now.Add(life),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	certificate := pemutil.EncodeCertificate(der)
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["webhook"] = &clientcmdapi.Cluster{Server: "https://" + address + "/authenticate", CertificateAuthorityData: certificate}
	kubeconfig.AuthInfos["webhook"] = &clientcmdapi.AuthInfo{}
	kubeconfig.Contexts["webhook"] = &clientcmdapi.Context{Cluster: "webhook", AuthInfo: "webhook"}
	kubeconfig.CurrentContext = "webhook"
	return errors.Join(
		os.WriteFile(a.file(certificateFile), certificate, 0o600),
		os.WriteFile(a.file(keyFile), keyPEM, 0o600),
		clientcmd.WriteToFile(*kubeconfig, a.file(webhookFile)),
	)
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
