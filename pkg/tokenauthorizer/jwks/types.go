package jwks

import (
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
)

// Everyone is the name of a Cluster with the source Hub that admits every cluster
// that publishes its keys on the hub and has no entry of its own.
const Everyone = "*"

// DefaultStaleFor is for how long keys outlive their source.
const DefaultStaleFor = 24 * time.Hour

// LegacyIssuer is the "iss" of Secrets' tokens, the same for all clusters.
const LegacyIssuer = "kubernetes/serviceaccount"

// Cluster is a managed cluster with the source of its keys.
type Cluster struct {
	// Name of the cluster, or Everyone.
	Name string
	// Issuer is the exact "iss" of its tokens. With the source Hub it may be
	// empty, which means: as published.
	Issuer string
	// Legacy takes its keys for keys of LegacyIssuer as well.
	Legacy bool
	// Source of its keys.
	Source Source
	// Pins, if any, are the only keys to take, by key id or by thumbprint.
	Pins []string
	// StaleFor is for how long keys are used after their source was last read
	// successfully; 0 means DefaultStaleFor.
	StaleFor time.Duration
}

// Source is a source of keys. Exactly one of Inline, File, URI, Discovery and Hub is
// set.
type Source struct {
	// Inline is a JSON Web Key Set.
	Inline []byte
	// File holds a JSON Web Key Set, and is read again when it changes.
	File string
	// URI is an https URL that serves a JSON Web Key Set.
	URI string
	// Discovery finds the key set through OpenID Connect discovery.
	Discovery *Discovery
	// Hub takes what the cluster's agent publishes on the hub.
	Hub bool

	// CA is the PEM bundle that verifies the server of URI and Discovery, and
	// CAFile a file that holds it. Without both the system's roots do.
	CA     []byte
	CAFile string
	// Auth is the credential for URI and Discovery.
	Auth Auth
}

// Discovery is OpenID Connect discovery (OpenID Connect Discovery 1.0 §4). The
// issuer in the document must be the cluster's.
type Discovery struct {
	// URL is where the document is; an URL without /.well-known/ is completed.
	// Empty means the issuer, or with a kubeconfig the cluster's API server.
	URL string
}

// Auth is how to authenticate to a source; the zero value does not.
type Auth struct {
	// TokenFile holds a bearer token and is read for every fetch.
	TokenFile string
	// KubeconfigFile is a kubeconfig: its CA, its credential and, for
	// Discovery without URL, its server.
	KubeconfigFile string
}

// Key is a key of a cluster.
type Key struct {
	jwk.Key
	// Cluster is the cluster that the key belongs to.
	Cluster string
}

// Status is the store's status of the keys of one cluster.
type Status struct {
	// Cluster is its name.
	Cluster string
	// Issuer of its tokens, empty for a cluster that has published none yet.
	Issuer string
	// Source is the kind of source: inline, file, uri, discovery or hub.
	Source string
	// KeyIDs are the ids of the keys that are used.
	KeyIDs []string
	// Ignored says of each key of the source that is not used why.
	Ignored []string
	// Tried is set once the source was read, successfully or not. A store
	// whose clusters were all tried is ready.
	Tried bool
	// LastSuccess is when the source was last read successfully.
	LastSuccess time.Time
	// NextRefresh is when the source will be read next; zero for never.
	NextRefresh time.Time
	// Err is why the last attempt failed, nil if it did not.
	Err error
	// Shared are the keys that are refused because they stand for several
	// clusters.
	Shared []SharedKeyError
}

// Age returns how old the keys are at now, 0 without keys.
func (s Status) Age(now time.Time) time.Duration {
	if s.LastSuccess.IsZero() {
		return 0
	}
	return now.Sub(s.LastSuccess)
}
