package pullsecrets

import (
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull"
)

// Preset is whose names pull secrets have.
func (f *Flags) Preset() imagepull.Preset { return f.preset }

// openShift sets what was not set to what OpenShift's controllers do: tokens of the
// API server, for the two Services that the integrated registry can have.
func (f *Flags) openShift() {
	defaults := map[string]func(){
		"registry-service": func() {
			f.registry.services = []string{"default/docker-registry", "openshift-image-registry/image-registry"}
		},
		"token-ttl": func() { f.token.spec.TTL = time.Hour },
		"username":  func() { f.token.spec.Username = "<token>" },
		"format":    func() { f.token.spec.Format = imagepull.DockerCfg },
	}
	for name, set := range defaults {
		if !f.set.Changed(name) {
			set()
		}
	}
}
