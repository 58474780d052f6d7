package cli

import (
	"net/http"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// trail is what a call has done so far: what an interruption leaves.
type trail struct {
	mu    sync.Mutex
	wrote bool
	step  string
}

// stop notes the step that was not finished; the first is the one that a user saw last.
func (t *trail) stop(step string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.step == "" {
		t.step = step
	}
}

// watch notes the writes of a connection.
func (t *trail) watch(next http.RoundTripper) http.RoundTripper {
	return trailTransport{trail: t, next: next}
}

type trailTransport struct {
	trail *trail
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t trailTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if isWrite(req) {
		t.trail.mu.Lock()
		t.trail.wrote = true
		t.trail.mu.Unlock()
	}
	return t.next.RoundTrip(req)
}

// Interrupted says in one line where a command was interrupted, and what it left.
func (k *Kube) Interrupted(cmd *cobra.Command) string {
	k.trail.mu.Lock()
	defer k.trail.mu.Unlock()
	text := "Interrupted"
	if k.trail.step != "" {
		first, size := utf8.DecodeRuneInString(k.trail.step)
		text += " while " + string(unicode.ToLower(first)) + k.trail.step[size:]
	}
	switch {
	case k.trail.wrote && k.dryRun == DryRunNone:
		return text + "; what was changed so far stays. Run the command again to continue."
	case cmd.Flags().Lookup("dry-run") != nil:
		return text + "; nothing was changed."
	}
	return text + "."
}
