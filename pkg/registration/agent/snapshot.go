package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// snapshot is what the managed cluster held at one moment: all that decides
// what the agent does next.
type snapshot struct {
	identity driver.Identity
	driver   driver.Agent
	// bootstrap is nil when there is none that can be used; then bootstrapErr says why.
	bootstrap    *kubeconfig.Hub
	bootstrapErr error
	// stored is the hub kubeconfig Secret, and hub its kubeconfig taken apart.
	stored driver.Data
	hub    *kubeconfig.Hub
	// facts are about the credential in stored.
	facts credential.Facts
}

func (a *Agent) look(ctx context.Context) (*snapshot, error) {
	stored, err := a.store.get(ctx, a.config.Secrets.Hub)
	if err != nil {
		return nil, err
	}
	s := &snapshot{stored: stored}
	if s.identity, err = a.store.identify(ctx, stored); err != nil {
		return nil, err
	}
	s.driver = a.config.NewDriver(s.identity)
	if s.bootstrap, err = a.store.bootstrap(ctx); err != nil {
		if !errors.Is(err, errNoBootstrap) && !errors.Is(err, kubeconfig.ErrInvalid) {
			return nil, err
		}
		s.bootstrapErr = err
	}
	s.inspect(&a.held)
	return s, nil
}

// errOtherHub says that the stored hub kubeconfig does not lead where the
// bootstrap kubeconfig leads.
var errOtherHub = fmt.Errorf("%w: the bootstrap kubeconfig leads elsewhere", credential.ErrWrongIdentity)

// inspect judges what is stored. The hub kubeconfig is good only if it leads
// where the bootstrap kubeconfig leads; without a
// bootstrap kubeconfig there is nothing that it could contradict.
func (s *snapshot) inspect(h *held) {
	s.facts.Problem = func() error {
		if len(s.stored[names.KeyKubeconfig]) == 0 {
			return fmt.Errorf("no hub kubeconfig: %w", credential.ErrMissing)
		}
		hub, err := kubeconfig.ParseHub(s.stored[names.KeyKubeconfig])
		if err != nil {
			return fmt.Errorf("%w: %w", credential.ErrMalformed, err)
		}
		if s.bootstrap != nil && !hub.SameServer(*s.bootstrap) {
			return fmt.Errorf("%w: it is for the hub %q at %s, and that is %q at %s or another certificate authority",
				errOtherHub, hub.ClusterName, hub.Cluster.Server, s.bootstrap.ClusterName, s.bootstrap.Cluster.Server)
		}
		if !s.named() {
			return fmt.Errorf("%w: it was stored for another cluster or agent name", credential.ErrWrongIdentity)
		}
		s.facts.Validity, err = s.driver.Inspect(s.stored)
		if err != nil {
			return err
		}
		s.hub = &hub
		return nil
	}()
	seed := names.AgentUser(s.identity.Cluster, s.identity.Agent)
	s.facts.RenewAt = credential.RenewAt(s.facts.Validity, s.driver.Renewal(), seed)
	if obtained, ok := h.since(s.fingerprint()); ok {
		s.facts.RenewAt = credential.RenewObtained(s.facts.Validity, s.driver.Renewal(), seed, obtained)
	}
}

// fingerprint names the stored credential.
func (s *snapshot) fingerprint() string { return s.driver.Fingerprint(s.stored) }

// hubData is the content of the hub kubeconfig Secret for an issued credential.
func (s *snapshot) hubData(hub kubeconfig.Hub, issued driver.Data) (driver.Data, error) {
	return driver.SecretData(hub, s.identity, s.driver.User(), issued)
}

// with returns the snapshot with other data in the hub kubeconfig Secret.
func (s *snapshot) with(stored driver.Data, h *held) *snapshot {
	next := *s
	next.stored, next.hub, next.facts = stored, nil, credential.Facts{}
	next.inspect(h)
	return &next
}

// usable reports whether the agent can work with what is stored, or why not.
func (s *snapshot) usable(now time.Time) (credential.Need, bool) {
	need, needed := credential.Unusable().Judge(s.facts, now)
	return need, !needed
}

// hubReason is the hub half of HubConnectionDegraded for a need.
func (s *snapshot) hubReason(need credential.Need) string {
	switch {
	case need.Reason == credential.Missing && s.stored == nil:
		return names.ReasonHubKubeConfigSecretMissing
	case need.Reason == credential.Missing:
		return names.ReasonHubKubeConfigMissing
	}
	return names.ReasonHubKubeConfigError
}

// sameBootstrap reports whether two snapshots bootstrap alike: as the same
// agent, at the same hub, with the same credential.
func (s *snapshot) sameBootstrap(other *snapshot) bool {
	if s.identity != other.identity || (s.bootstrap == nil) != (other.bootstrap == nil) {
		return false
	}
	if s.bootstrap == nil {
		return s.bootstrapErr.Error() == other.bootstrapErr.Error()
	}
	a, errA := s.bootstrap.EncodeBootstrap()
	b, errB := other.bootstrap.EncodeBootstrap()
	return errA == nil && errB == nil && s.bootstrap.ClusterName == other.bootstrap.ClusterName && string(a) == string(b)
}
