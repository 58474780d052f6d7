package awsirsa_test

import (
	"slices"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa"
)

// TestStoredPluginIsOurOwn: what the driver stores is what commands and agents
// take for the plugin of this program, and run.
func TestStoredPluginIsOurOwn(t *testing.T) {
	t.Parallel()
	want := awsirsa.NewAgent(config()).User()
	stored := secret(t, want)
	hub, err := kubeconfig.ParseHub(stored[names.KeyKubeconfig])
	if err != nil {
		t.Fatal(err)
	}
	contained, err := hub.Contained(stored)
	if err != nil {
		t.Fatal(err)
	}
	mounted, err := hub.Mounted(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range []kubeconfig.Hub{contained, mounted} {
		if got.User.Exec == nil || !slices.Equal(got.User.Exec.Args, want.Exec.Args) || got.User.Exec.Command == want.Exec.Command {
			t.Errorf("got %+v", got.User.Exec)
		}
	}
}
