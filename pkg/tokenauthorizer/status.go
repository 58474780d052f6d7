package tokenauthorizer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/internal/metric"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/mint"
)

// Status is the content of /clusters: the health of each cluster. Its form is stable.
type Status struct {
	Ready bool `json:"ready"`
	// Waiting says for what, while the role is not ready.
	Waiting       string              `json:"waiting,omitempty"`
	Configuration ConfigurationStatus `json:"configuration"`
	Clusters      []ClusterStatus     `json:"clusters"`
	Targets       []TargetStatus      `json:"targets"`
	// Forbidden are accounts of the hub that rules lead to and that the hub does
	// not let us mint for.
	Forbidden []ForbiddenStatus `json:"forbidden,omitempty"`
}

// ConfigurationStatus shows which configuration is in force.
type ConfigurationStatus struct {
	Source string `json:"source"`
	// LoadedAt is when the one in force was taken over.
	LoadedAt time.Time `json:"loadedAt,omitzero"`
	// Error is why a later one is not in force.
	Error    string   `json:"error,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// ClusterStatus describes one cluster.
type ClusterStatus struct {
	Name   string   `json:"name"`
	Issuer string   `json:"issuer,omitempty"`
	Source string   `json:"source"`
	Keys   []string `json:"keys"`
	// Tried is set after the first request for its keys.
	Tried       bool      `json:"tried"`
	LastSuccess time.Time `json:"lastSuccess,omitzero"`
	AgeSeconds  int64     `json:"ageSeconds,omitempty"`
	NextRefresh time.Time `json:"nextRefresh,omitzero"`
	// Error is why its keys could not be read the last time.
	Error   string   `json:"error,omitempty"`
	Ignored []string `json:"ignored,omitempty"`
	// Shared are keys that are refused because another cluster has them too.
	Shared []string `json:"shared,omitempty"`
	// Rules is how many allow rules it has.
	Rules int `json:"rules"`
	// Requests counts decisions by result: allowed, denied, error.
	Requests map[string]int64 `json:"requests,omitempty"`
}

// TargetStatus describes a namespace of the hub that tokens are issued in.
type TargetStatus struct {
	Namespace string `json:"namespace"`
	Synced    bool   `json:"synced"`
	Error     string `json:"error,omitempty"`
}

// ForbiddenStatus describes an account of the hub that may not be minted for.
type ForbiddenStatus struct {
	// Target is namespace/name.
	Target string `json:"target"`
	// Error names the Role that is missing.
	Error string `json:"error"`
}

// status serves what the role reports about itself.
type status struct {
	config Config
	store  *jwks.Store
	minter *mint.Minter
	engine *engine
	// check returns why the role is not ready, nil if it is.
	check func(*http.Request) error
}

// serveClusters serves Status as JSON.
func (s *status) serveClusters(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(s.status(r)) // The client may be gone.
}

// serveReady answers like /readyz of an API server; with ?verbose it lists each
// cluster and each target namespace.
func (s *status) serveReady(w http.ResponseWriter, r *http.Request) {
	told := s.status(r)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if !told.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	if !r.URL.Query().Has("verbose") && told.Ready {
		_, _ = io.WriteString(w, "ok\n")
		return
	}
	_, _ = io.WriteString(w, told.verbose()) //nolint:gosec // it is plain text
}

// verbose is one line per thing that must be right.
func (t *Status) verbose() string {
	var b strings.Builder
	line := func(what, problem string, fine bool) {
		mark := "+"
		if !fine {
			mark = "-"
		}
		fmt.Fprintf(&b, "[%s]%s", mark, what)
		if problem != "" {
			fmt.Fprintf(&b, ": %s", problem)
		}
		b.WriteByte('\n')
	}
	line("configuration "+t.Configuration.Source, t.Configuration.Error, t.Configuration.Error == "")
	for _, c := range t.Clusters {
		problem := cmp.Or(c.Error, strings.Join(c.Shared, "; "))
		if problem == "" {
			problem = fmt.Sprintf("%d keys", len(c.Keys))
		}
		line("cluster "+c.Name, problem, len(c.Keys) > 0)
	}
	for _, target := range t.Targets {
		line("target namespace "+target.Namespace, target.Error, target.Synced)
	}
	for _, target := range t.Forbidden {
		line("target "+target.Target, target.Error, false)
	}
	line("ready", t.Waiting, t.Ready)
	return b.String()
}

func (s *status) status(request *http.Request) Status {
	out := Status{Clusters: []ClusterStatus{}, Targets: []TargetStatus{}}
	if err := s.check(request); err != nil {
		out.Waiting = err.Error()
	} else {
		out.Ready = true
	}
	now := s.config.Clock.Now()
	rules := s.configuration(&out)
	requests := s.requests()
	for _, known := range s.store.Status() {
		cluster := clusterStatus(known, now)
		cluster.Rules = rules(known.Cluster)
		cluster.Requests = requests[known.Cluster]
		out.Clusters = append(out.Clusters, cluster)
	}
	for _, known := range s.minter.Status() {
		target := TargetStatus{Namespace: known.Namespace, Synced: known.Synced}
		if known.Err != nil {
			target.Error = explainTarget(known)
		}
		out.Targets = append(out.Targets, target)
	}
	forbidden := s.minter.Forbidden()
	for _, target := range slices.Sorted(maps.Keys(forbidden)) {
		out.Forbidden = append(out.Forbidden, ForbiddenStatus{Target: target, Error: forbidden[target]})
	}
	slices.SortFunc(out.Targets, func(a, b TargetStatus) int { return strings.Compare(a.Namespace, b.Namespace) })
	return out
}

// explainTarget says what is missing where the hub does not let us look.
func explainTarget(n mint.NamespaceStatus) string {
	return fmt.Sprintf("%v; give the Role that `kubectl ocm exchange rbac` prints", n.Err)
}

// configuration describes the configuration in force, and returns how many
// rules a cluster has under it.
func (s *status) configuration(out *Status) (rules func(cluster string) int) {
	engine, source := s.engine, s.config.Source
	switch {
	case source.File != "":
		out.Configuration.Source = source.File
	case source.Workload != nil:
		out.Configuration.Source = "TokenReview by " + source.Workload.Host
	default:
		out.Configuration.Source = "the hub"
	}
	engine.mu.Lock()
	defer engine.mu.Unlock()
	out.Configuration.LoadedAt = engine.at
	if engine.problem != nil {
		out.Configuration.Error = engine.problem.Error()
	}
	current := engine.current
	if current == nil {
		return func(string) int { return 0 }
	}
	out.Configuration.Warnings = current.Warnings
	counts := make(map[string]int, len(current.Clusters))
	for i := range current.Clusters {
		counts[current.Clusters[i].Name()] = len(current.Clusters[i].Spec.Allow)
	}
	return func(cluster string) int {
		if n, ok := counts[cluster]; ok {
			return n
		}
		return counts[jwks.Everyone]
	}
}

func clusterStatus(known jwks.Status, now time.Time) ClusterStatus {
	out := ClusterStatus{
		Name: known.Cluster, Issuer: known.Issuer, Source: known.Source, Keys: known.KeyIDs, Ignored: known.Ignored,
		Tried: known.Tried, LastSuccess: known.LastSuccess, NextRefresh: known.NextRefresh,
		AgeSeconds: int64(known.Age(now) / time.Second),
	}
	if out.Keys == nil {
		out.Keys = []string{}
	}
	if known.Err != nil {
		out.Error = known.Err.Error()
	}
	for _, shared := range known.Shared {
		out.Shared = append(out.Shared, shared.Error())
	}
	return out
}

// requests counts the decisions about each cluster, by the metrics.
func (s *status) requests() map[string]map[string]int64 {
	out := map[string]map[string]int64{}
	if s.config.Metrics == nil {
		return out
	}
	families, err := s.config.Metrics.Gather()
	if err != nil { // What could be gathered is shown.
		s.config.Log.V(1).Info("Gathered only some metrics", "problem", err.Error())
	}
	for _, family := range families {
		if family.GetName() != metric.Prefix+"requests_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			var cluster, result string
			for _, label := range m.GetLabel() {
				switch label.GetName() {
				case "cluster":
					cluster = label.GetValue()
				case "result":
					result = label.GetValue()
				}
			}
			if out[cluster] == nil {
				out[cluster] = map[string]int64{}
			}
			out[cluster][result] += int64(m.GetCounter().GetValue())
		}
	}
	return out
}
