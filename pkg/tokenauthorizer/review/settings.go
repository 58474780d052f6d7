package review

import (
	"errors"
	"fmt"
	"time"
)

// Mode is how often a token is reviewed.
type Mode string

// The ladder: each mode costs more calls than the one before and sees a
// deletion sooner.
const (
	// Never makes no call. A deleted ServiceAccount is noticed when the token
	// ends.
	Never Mode = "Never"
	// Cached makes one call per token and Settings.TTL.
	Cached Mode = "Cached"
	// Always makes one call per request.
	Always Mode = "Always"
)

// How long a review counts in mode Cached.
const (
	MinTTL     = 10 * time.Second
	DefaultTTL = time.Minute
	MaxTTL     = 5 * time.Minute
)

// Settings say how one cluster's tokens are reviewed. The zero value is Never.
type Settings struct {
	// Mode empty means Never.
	Mode Mode
	// TTL is for Cached alone; 0 means DefaultTTL.
	TTL time.Duration
	// KubeconfigFile is the kubeconfig of the cluster's API server, with a credential
	// that may create TokenReviews (ClusterRole system:auth-delegator).
	KubeconfigFile string
	// Audiences are ours, one of which the API server must confirm. Empty, for
	// files in tokensmith's form alone, leaves it at the API server's own.
	Audiences []string
}

// Validate says what is wrong with s.
func (s Settings) Validate() error {
	switch s.Mode {
	case "", Never:
		if s.KubeconfigFile != "" || s.TTL != 0 {
			return errors.New(`the review has settings but its mode is Never; set the mode to "Cached" or "Always"`)
		}
		return nil
	case Cached, Always:
	default:
		return fmt.Errorf("the review mode %q is not one of %s, %s and %s", s.Mode, Never, Cached, Always)
	}
	if s.KubeconfigFile == "" {
		return fmt.Errorf("the review mode %s needs a kubeconfig file that leads to the cluster's API server", s.Mode)
	}
	return s.validateTTL()
}

func (s Settings) validateTTL() error {
	switch {
	case s.TTL == 0:
		return nil
	case s.Mode == Always:
		return errors.New("a review in mode Always counts for one request; remove its TTL, or use Cached")
	case s.TTL < MinTTL || s.TTL > MaxTTL:
		return fmt.Errorf("a review counts for %v, which must be from %v to %v", s.TTL, MinTTL, MaxTTL)
	}
	return nil
}
