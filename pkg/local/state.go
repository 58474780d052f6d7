package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/atomicfile"
)

// Phase is where a cluster is in its life.
type Phase string

// The phases.
const (
	// Starting clusters have a supervisor but cannot run Pods yet.
	Starting Phase = "Starting"
	// Running clusters have a ready API server and node.
	Running Phase = "Running"
	// Degraded clusters have a component that is down and being restarted.
	Degraded Phase = "Degraded"
	// Failed clusters could not be started.
	Failed Phase = "Failed"
	// Stopped clusters have state but no process.
	Stopped Phase = "Stopped"
)

// Spec says how a cluster is to be run.
type Spec struct {
	Name string `json:"name"`
	// Localkube is the control plane's executable.
	Localkube string `json:"localkube"`
	// Images maps image references to executables.
	Images map[string]string `json:"images"`
	// NoClientSigner is as in controlplane.Config.
	NoClientSigner bool `json:"noClientSigner,omitempty"`
	// CertDuration is as in controlplane.Config.
	CertDuration time.Duration `json:"certDuration,omitempty"`
	// APIServerArgs are as in controlplane.Config.
	APIServerArgs []string `json:"apiServerArgs,omitempty"`
}

// State is a supervisor's record of its cluster.
type State struct {
	// PID of the supervisor that wrote it.
	PID     int    `json:"pid"`
	Phase   Phase  `json:"phase"`
	Message string `json:"message,omitempty"`
	// Hint is what a user can do about a failure.
	Hint string `json:"hint,omitempty"`
	// URL of the API server.
	URL string `json:"url,omitempty"`
	// NodeIP is the address of the node.
	NodeIP    string    `json:"nodeIP,omitempty"`
	StartedAt time.Time `json:"startedAt"`
	// Components are the programs by name.
	Components map[string]Component `json:"components,omitempty"`
}

// Component is a program of a cluster.
type Component struct {
	PID      int    `json:"pid,omitempty"`
	Restarts int    `json:"restarts"`
	Message  string `json:"message,omitempty"`
}

// readJSON reads a file into v. A file that does not exist leaves it as it is.
func readJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return atomicfile.Write(path, append(data, '\n'))
}
