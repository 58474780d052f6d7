package audit

import (
	"strings"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/authorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
)

// Decisions of a Line.
const (
	Allowed = "allowed"
	// Denied is the caller's fault, Error is ours or the hub's.
	Denied = "denied"
	Error  = "error"
)

// Line is one decision. Its fields are stable: they are added to, never
// renamed. Empty ones are left out.
type Line struct {
	// Time is when the request came.
	Time time.Time `json:"time"`
	// RequestID, Principal, Method and Path are as the proxy reports them.
	RequestID string `json:"requestID,omitempty"`
	// Decision is "allowed", "denied" or "error"; Reason and Detail say why not.
	Decision string `json:"decision"`
	Reason   string `json:"reason,omitempty"`
	Detail   string `json:"detail,omitempty"`
	// Subject is who asked, as far as it was proven.
	Subject *Subject `json:"subject,omitempty"`
	// Grant is the grant of the request, or the one that it would have had.
	Grant *Grant `json:"grant,omitempty"`
	// Caller is the origin of the request.
	Caller Caller `json:"caller,omitzero"`
	// Microseconds is how long the decision took.
	Microseconds int64 `json:"microseconds"`
	// Sample is, for a request that a kept token answered, the number of such
	// requests for which this line stands.
	Sample int `json:"sample,omitempty"`
}

// Subject is the workload. Cluster alone is there if its token was refused
// after its signature was verified.
type Subject struct {
	Cluster   string   `json:"cluster"`
	Namespace string   `json:"namespace,omitempty"`
	Name      string   `json:"name,omitempty"`
	UID       string   `json:"uid,omitempty"`
	Pod       string   `json:"pod,omitempty"`
	PodUID    string   `json:"podUID,omitempty"`
	Node      string   `json:"node,omitempty"`
	KeyID     string   `json:"kid,omitempty"`
	TokenID   string   `json:"jti,omitempty"`
	Audiences []string `json:"audiences,omitempty"`
	// Legacy is set for a token with flat claims.
	Legacy bool `json:"legacy,omitempty"`
}

// Grant is the ServiceAccount of the hub.
type Grant struct {
	Rule      string `json:"rule"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// CredentialID is the value in the hub's audit log for each request with the token,
	// in user.extra["authentication.kubernetes.io/credential-id"].
	CredentialID string    `json:"credentialID,omitempty"`
	Expires      time.Time `json:"expires,omitzero"`
	// Cached is set when the token was minted for an earlier request.
	Cached bool `json:"cached,omitempty"`
}

// Caller is the proxy's information about the request.
type Caller struct {
	Principal string `json:"principal,omitempty"`
	Method    string `json:"method,omitempty"`
	// Path is without the query.
	Path string `json:"path,omitempty"`
}

// newLine takes of e what may be written.
func newLine(e *authorizer.Event) *Line {
	path, _, _ := strings.Cut(e.Origin.Path, "?")
	l := &Line{
		Time:         e.Time,
		RequestID:    short(e.Origin.RequestID),
		Decision:     Allowed,
		Caller:       Caller{Principal: short(e.Origin.Principal), Method: short(e.Origin.Method), Path: short(path)},
		Microseconds: e.Took.Microseconds(),
	}
	if e.Err != nil {
		refused := denial.Of(e.Err)
		l.Decision, l.Reason, l.Detail = Denied, string(refused.Reason), short(refused.Detail)
		if refused.Reason.Class() == denial.Unavailable {
			l.Decision = Error
		}
	}
	if id := &e.Decision.Identity; id.Cluster != "" {
		l.Subject = &Subject{
			Cluster: id.Cluster, Namespace: id.Account.Namespace, Name: id.Account.Name, UID: short(id.Account.UID),
			Pod: short(id.Bound.Pod.Name), PodUID: short(id.Bound.Pod.UID), Node: short(id.Bound.Node.Name),
			KeyID: short(id.Token.KeyID), TokenID: short(id.Token.ID), Audiences: few(id.Token.Audiences), Legacy: id.Token.Legacy,
		}
	}
	if g := &e.Decision.Grant; g.Rule != "" {
		l.Grant = &Grant{
			Rule: g.Rule, Namespace: g.Target.Namespace, Name: g.Target.Name,
			Expires: e.Decision.Token.Expires, Cached: e.Decision.Cached,
		}
		if id := e.Decision.Token.ID; id != "" {
			l.Grant.CredentialID = "JTI=" + id
		}
	}
	return l
}

// short bounds what others may have us write; JSON quotes it.
func short(s string) string { return excerpt.Of(s, 1024) }

// few bounds a list of what others may have us write.
func few(all []string) []string {
	const most = 10
	out := make([]string, 0, min(len(all), most+1))
	for _, one := range all[:min(len(all), most)] {
		out = append(out, short(one))
	}
	if len(all) > most {
		out = append(out, "...")
	}
	return out
}
