package cli

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauthv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
)

// execInfo is the variable in which a Kubernetes client passes the version that it
// speaks to a credential plugin
// (https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins).
const execInfo = "KUBERNETES_EXEC_INFO"

// ExecCredentialVersion returns the version of an ExecCredential that the client
// which runs us wants. The two that there are differ in their name alone.
func (e Env) ExecCredentialVersion() (string, error) {
	versions := []string{clientauthv1.SchemeGroupVersion.String(), clientauthv1.SchemeGroupVersion.Group + "/v1beta1"}
	info := e.Getenv(execInfo)
	if info == "" {
		return versions[0], nil
	}
	var asked metav1.TypeMeta
	if err := json.Unmarshal([]byte(info), &asked); err != nil {
		return "", errors.New("the client passes no valid ExecCredential in " + execInfo)
	}
	if !slices.Contains(versions, asked.APIVersion) {
		return "", Usagef("the client wants an ExecCredential of %q, and this plugin speaks %v: write one of them into its kubeconfig", asked.APIVersion, versions)
	}
	return asked.APIVersion, nil
}

// PrintExecCredential prints a token for the Kubernetes client which runs us.
func (e Env) PrintExecCredential(version, token string, expires time.Time) error {
	return json.NewEncoder(e.Out).Encode(clientauthv1.ExecCredential{
		TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "ExecCredential"},
		Status:   &clientauthv1.ExecCredentialStatus{Token: token, ExpirationTimestamp: &metav1.Time{Time: expires}},
	})
}
