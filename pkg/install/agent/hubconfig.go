package agent

import (
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// HubConfig returns the connection that the agent has to its hub. What the
// stored kubeconfig names beyond its Secret, such as a credential plugin of
// another program, is refused: it is not for this machine.
func (a Installed) HubConfig() (*rest.Config, error) {
	hub, err := a.Hub.Contained(a.Data)
	if err != nil {
		return nil, fmt.Errorf("secret %s: %w", names.HubKubeconfigSecret, err)
	}
	return hub.Config()
}
