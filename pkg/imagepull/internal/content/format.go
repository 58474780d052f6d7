package content

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
)

// Format says under which keys a Secret has its credentials.
type Format string

// The formats. A kubelet reads both; some tools that build images read dockercfg
// only, so both can be in one Secret.
const (
	DockerConfigJSON Format = "dockerconfigjson"
	DockerCfg        Format = "dockercfg"
	Both             Format = "both"
)

// Type is the type of Secrets in the format.
func (f Format) Type() corev1.SecretType {
	if f == DockerCfg {
		return corev1.SecretTypeDockercfg
	}
	return corev1.SecretTypeDockerConfigJson
}

// In is the format nearest to f that a Secret of a type can have: its type cannot
// be changed.
func (f Format) In(secret corev1.SecretType) Format {
	switch {
	case secret == corev1.SecretTypeDockercfg:
		return DockerCfg
	case f == Both:
		return Both
	default:
		return DockerConfigJSON
	}
}

// formatOf is the format that data has.
func formatOf(data map[string][]byte) Format {
	_, isJSON := data[corev1.DockerConfigJsonKey]
	_, isCfg := data[corev1.DockerConfigKey]
	switch {
	case isJSON && isCfg:
		return Both
	case isCfg:
		return DockerCfg
	default:
		return DockerConfigJSON
	}
}

// entries are the credentials by host.
type entries map[string]entry

// entry is the credential for one registry: user and password in base64.
type entry struct {
	Auth string `json:"auth"`
}

// config is Docker's configuration file as far as it holds credentials. The older
// dockercfg is the entries alone.
type config struct {
	Auths entries `json:"auths"`
}

// encode stores entries under the keys of a format.
func (f Format) encode(e entries) (map[string][]byte, error) {
	data := map[string][]byte{}
	var errs [2]error
	if f != DockerCfg {
		data[corev1.DockerConfigJsonKey], errs[0] = json.Marshal(config{Auths: e})
	}
	if f != DockerConfigJSON {
		data[corev1.DockerConfigKey], errs[1] = json.Marshal(e)
	}
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("encode the pull secret: %w", err)
	}
	return data, nil
}

// decode reads what encode stored. Its errors quote nothing of data.
func (f Format) decode(data map[string][]byte) (entries, error) {
	var c config
	var cfg entries
	if f != DockerCfg && json.Unmarshal(data[corev1.DockerConfigJsonKey], &c) != nil ||
		f != DockerConfigJSON && json.Unmarshal(data[corev1.DockerConfigKey], &cfg) != nil {
		return nil, errors.New("the data is not JSON")
	}
	if f == DockerCfg {
		return cfg, nil
	}
	if f == Both && !maps.Equal(c.Auths, cfg) {
		return nil, errors.New("the credentials in its two formats differ")
	}
	return c.Auths, nil
}
