package legacytoken

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// dockerConfig is the content of an image pull secret.
type dockerConfig struct {
	auths map[string]auth
	// more says that there is more in it than credentials.
	more bool
}

// auth is the credential for a registry, as Docker's configuration file has it.
type auth struct {
	Auth          string `json:"auth"`
	Username      string `json:"username"`
	Password      string `json:"password"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// errContent quotes nothing of what cannot be read.
var errContent = errors.New("its content is invalid")

// readDockerConfig reads a pull secret of either type.
func readDockerConfig(secret *corev1.Secret) (dockerConfig, error) {
	if secret.Type == corev1.SecretTypeDockercfg {
		var c dockerConfig
		if json.Unmarshal(secret.Data[corev1.DockerConfigKey], &c.auths) != nil {
			return dockerConfig{}, errContent
		}
		return c, nil
	}
	var file map[string]json.RawMessage
	if json.Unmarshal(secret.Data[corev1.DockerConfigJsonKey], &file) != nil {
		return dockerConfig{}, errContent
	}
	var c dockerConfig
	if auths, ok := file["auths"]; ok && json.Unmarshal(auths, &c.auths) != nil {
		return dockerConfig{}, errContent
	}
	delete(file, "auths")
	c.more = len(file) > 0
	return c, nil
}

// hosts are the registries, sorted.
func (c dockerConfig) hosts() []string { return slices.Sorted(maps.Keys(c.auths)) }

// password returns the password that a kubelet sends; empty if there is none. The user
// and password in base64 take precedence.
func (a auth) password() string {
	if a.Auth == "" {
		return a.Password
	}
	decoded, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.TrimSpace(a.Auth), "="))
	if err != nil {
		return ""
	}
	_, password, _ := strings.Cut(string(decoded), ":")
	return password
}

// only reports whether a credential is a user and a password and nothing else.
func (a auth) only() bool { return a.IdentityToken == "" && a.RegistryToken == "" }
