package content

import "encoding/base64"

// Credential is a token for registry hosts.
type Credential struct {
	Hosts           []string
	Username, Token string
}

// Empty is the data of a pull secret that has no token yet.
func Empty(format Format) (map[string][]byte, error) { return format.encode(entries{}) }

// Encode is the data of a pull secret with credentials.
func Encode(format Format, credentials ...Credential) (map[string][]byte, error) {
	e := entries{}
	for _, c := range credentials {
		auth := base64.StdEncoding.EncodeToString([]byte(c.Username + ":" + c.Token))
		for _, host := range c.Hosts {
			e[host] = entry{Auth: auth}
		}
	}
	return format.encode(e)
}
