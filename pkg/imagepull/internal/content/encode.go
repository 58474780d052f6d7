package content

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// config is Docker's configuration file as far as it holds credentials.
type config struct {
	Auths map[string]entry `json:"auths"`
}

// entry is the credential for one registry: user and password in base64.
type entry struct {
	Auth string `json:"auth"`
}

// Empty is the data of a pull secret that has no token yet.
func Empty() map[string][]byte {
	return map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{}}`)}
}

// Encode is the data of a pull secret with a token for registry hosts.
func Encode(hosts []string, username, token string) (map[string][]byte, error) {
	c := config{Auths: make(map[string]entry, len(hosts))}
	for _, host := range hosts {
		c.Auths[host] = entry{Auth: base64.StdEncoding.EncodeToString([]byte(username + ":" + token))}
	}
	data, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode the pull secret: %w", err)
	}
	return map[string][]byte{corev1.DockerConfigJsonKey: data}, nil
}
