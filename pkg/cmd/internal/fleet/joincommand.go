package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hubaddress"
)

// TokenVariable is the environment variable that join takes the token from.
const TokenVariable = "OCM_HUB_TOKEN"

// JoinCommand is the line that a managed cluster's administrator runs.
type JoinCommand struct {
	// Name is what the user calls us.
	Name  string
	Token string
	Hub   hubaddress.Address
	// Cluster is the name that is filled in; empty is a placeholder.
	Cluster string
	Wait    bool
}

// String returns the command line. Every user of a machine can see the arguments
// of its processes, so the token is in the environment; scripts for clusteradm
// know it as an argument.
func (j JoinCommand) String() string {
	args := []string{TokenVariable + "=" + j.Token, j.Name, "join"}
	if j.Name == cli.Clusteradm {
		args = []string{j.Name, "join", "--hub-token", j.Token}
	}
	args = append(args, "--hub-apiserver", j.Hub.Server)
	for _, pin := range j.Hub.Pins {
		args = append(args, "--hub-ca-hash", string(pin))
	}
	if identifying, only := driver.Identifying(j.Hub.Drivers); only && len(identifying) == 1 {
		args = append(args, identifying[0].JoinArgs(identifying[0].Settings)...)
	}
	if j.Wait {
		args = append(args, "--wait")
	}
	cluster := j.Cluster
	if cluster == "" {
		cluster = "<cluster_name>"
	}
	return strings.Join(append(args, "--cluster-name", cluster), " ")
}

// JoinFlags are the flags of a command that prints a join command.
type JoinFlags struct {
	// Server is the address of the hub, empty to find it.
	Server string
	// BootstrapToken says that the token is a Kubernetes bootstrap token.
	BootstrapToken bool

	allowLoopback bool
	ttl           time.Duration
}

// AddTo registers the flags.
func (f *JoinFlags) AddTo(cmd *cobra.Command, server, bootstrapToken string) {
	flags := cmd.Flags()
	flags.StringVar(&f.Server, "hub-apiserver", "", server)
	flags.BoolVar(&f.BootstrapToken, "use-bootstrap-token", false, bootstrapToken)
	flags.BoolVar(&f.allowLoopback, "allow-loopback", false, "the address is meant, even if only this machine can reach it")
	flags.DurationVar(&f.ttl, "ttl", bootstrap.DefaultTTL, "lifetime of the printed token, from 10m to 24h")
}

// CheckTTL checks --ttl.
func (f *JoinFlags) CheckTTL() error { return bootstrap.CheckTTL(f.ttl) }

// CheckServer checks --hub-apiserver.
func (f *JoinFlags) CheckServer() error {
	if f.Server == "" {
		return nil
	}
	u, err := bootstrap.ParseServer(f.Server)
	if err != nil {
		return fmt.Errorf("--hub-apiserver: %w", err)
	}
	f.Server = u.String()
	if reason := bootstrap.LocalOnly(f.Server); reason != "" && !f.allowLoopback {
		return fmt.Errorf("--hub-apiserver: managed clusters cannot reach %s: %s; if it is meant, add --allow-loopback", f.Server, reason)
	}
	return nil
}

// Warn warns about an address that managed clusters may not be able to use.
func (f *JoinFlags) Warn(ctx context.Context, env cli.Env, address *hubaddress.Address) {
	if address.Local != "" && !f.allowLoopback {
		env.Warn("other machines cannot use %s: %s; give --hub-apiserver, or --allow-loopback if it is meant", address.Server, address.Local)
	}
	if warning := address.Probe(ctx); warning != "" {
		env.Warn("%s", warning)
	}
}

// Token makes the token, or returns the bootstrap token that the hub has.
func (f *JoinFlags) Token(ctx context.Context, env cli.Env, c client.Client) (bootstrap.Token, error) {
	tokens := bootstrap.Tokens{Client: c, Clock: env.Clock}
	if !f.BootstrapToken {
		return tokens.Mint(ctx, f.ttl)
	}
	token, err := tokens.Bootstrap(ctx)
	if errors.Is(err, bootstrap.ErrNoToken) {
		return token, cli.NotFoundf("make one with: "+env.Command("init --use-bootstrap-token"), "the hub has no bootstrap token for joining")
	}
	return token, err
}

// JoinInfoKind is the kind of a JoinInfo in the machine formats.
const JoinInfoKind = "JoinCommand"

// JoinInfo is the stable schema of a join command in the machine formats. The
// first two keys are clusteradm's.
type JoinInfo struct {
	HubToken     string             `json:"hub-token"`
	HubAPIServer string             `json:"hub-apiserver"`
	HubCAHashes  []bootstrap.CAHash `json:"hub-ca-hash,omitempty"`
	TokenID      string             `json:"token-id,omitempty"`
	Expires      *time.Time         `json:"expires,omitempty"`
	JoinCommand  string             `json:"join-command"`
}

// Info returns the machine form of the command.
func (j JoinCommand) Info(token bootstrap.Token) JoinInfo {
	info := JoinInfo{
		HubToken: j.Token, HubAPIServer: j.Hub.Server, HubCAHashes: j.Hub.Pins,
		TokenID: token.ID, JoinCommand: j.String(),
	}
	if !token.Expires.IsZero() {
		info.Expires = new(token.Expires.UTC())
	}
	return info
}
