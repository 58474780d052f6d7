package fleet_test

import (
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hubaddress"
)

func TestJoinCommand(t *testing.T) {
	t.Parallel()
	command := fleet.JoinCommand{
		Name: "clusteradm", Token: "t",
		Hub: hubaddress.Address{Server: "https://hub:6443", Pins: []bootstrap.CAHash{"sha256:a", "sha256:b"}},
	}
	want := "clusteradm join --hub-token t --hub-apiserver https://hub:6443 --hub-ca-hash sha256:a --hub-ca-hash sha256:b --cluster-name <cluster_name>"
	if got := command.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	command.Name, command.Hub.Pins, command.Wait, command.Cluster = "kubectl ocm", nil, true, "c1"
	want = "OCM_HUB_TOKEN=t kubectl ocm join --hub-apiserver https://hub:6443 --wait --cluster-name c1"
	if got := command.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
