package controlplane

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Config says what control plane to run.
type Config struct {
	// Dir is the state directory. It is made with mode 0700 if missing.
	Dir string
	// Binary is the localkube executable.
	Binary string
	// Scheduler also runs kube-scheduler.
	Scheduler bool
	// NoClientSigner leaves the signer kubernetes.io/kube-apiserver-client
	// without a key: requests for client certificates are approved but never
	// issued, as on a hub that signs none.
	NoClientSigner bool
	// CertDuration is the longest life of certificates that the controller
	// manager signs; 0 is its default of one year.
	CertDuration time.Duration
	// EgressSocket is the Unix socket of an HTTP CONNECT proxy that the API
	// server reaches pods, Services and nodes through; "" is a direct dial.
	EgressSocket string
	// Issuer is the "iss" of ServiceAccounts' tokens; empty means that of kubeadm
	// and kind.
	Issuer string
	// APIServerArgs are added behind our own.
	APIServerArgs []string
}

// ErrNotBuilt says that the localkube binary is missing.
var ErrNotBuilt = errors.New("localkube, the control plane of local clusters, is not installed")

// FindBinary returns the localkube executable: explicit when it is not "", else
// the first of candidates that exists. The error wraps ErrNotBuilt.
func FindBinary(explicit string, candidates ...string) (string, error) {
	if explicit != "" {
		candidates = []string{explicit}
	}
	for _, path := range candidates {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return "", fmt.Errorf("localkube binary: %w", err)
		}
		if _, err := exec.LookPath(absolute); err == nil {
			return absolute, nil
		}
	}
	return "", fmt.Errorf("%w: no executable at %s", ErrNotBuilt, strings.Join(candidates, " or "))
}
