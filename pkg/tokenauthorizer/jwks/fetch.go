package jwks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
)

// The paths at which an API server serves discovery and keys.
const (
	discoveryPath = "/.well-known/openid-configuration"
	keysPath      = "/openid/v1/jwks"
)

// errDocument says that a discovery document is not one of the cluster's issuer.
var errDocument = errors.New("the discovery document cannot be used")

// readFile reads a key set from a file.
func readFile(name string) reading {
	file, err := os.Open(name)
	if err != nil {
		return reading{err: fmt.Errorf("key file: %w", err)}
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, jwk.MaxBytes+1))
	if err != nil {
		return reading{err: fmt.Errorf("key file: %w", err)}
	}
	set, err := jwk.Parse(data)
	if err != nil {
		err = fmt.Errorf("key file %s: %w", name, err)
	}
	return reading{set: set, err: err}
}

// Try reads the source of a cluster once, from this machine, as a Store would.
func Try(ctx context.Context, cluster Cluster) (jwk.Set, error) {
	if err := cluster.Check(); err != nil {
		return jwk.Set{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	r := fetch(ctx, cluster)
	return r.set, r.err
}

// Unreachable reports whether a source could not be read because its server was not reached.
// From another machine it may be.
func Unreachable(err error) bool {
	var dial *net.OpError
	var name *net.DNSError
	return errors.As(err, &dial) && dial.Op == "dial" || errors.As(err, &name) || errors.Is(err, context.DeadlineExceeded)
}

// fetch reads a key set from a server.
func fetch(ctx context.Context, cluster Cluster) reading {
	visit, err := connect(cluster)
	if err != nil {
		return reading{err: err}
	}
	where := cluster.Source.URI
	if cluster.Source.Discovery != nil {
		if where, err = visit.discover(ctx, cluster); err != nil {
			return reading{err: err}
		}
	}
	body, header, err := visit.get(ctx, where)
	if err != nil {
		return reading{err: fmt.Errorf("key set: %w", err)}
	}
	set, err := jwk.Parse(body)
	if err != nil {
		err = fmt.Errorf("key set of %s: %w", where, err)
	}
	return reading{set: set, life: lifetime(header), err: err}
}

// discover returns where the key set of cluster is.
func (v *visit) discover(ctx context.Context, cluster Cluster) (string, error) {
	base := cluster.Source.Discovery.URL
	switch {
	case base != "":
	case v.server != nil:
		base = v.server.String()
	default:
		base = cluster.Issuer
	}
	if !strings.Contains(base, "/.well-known/") {
		base = strings.TrimSuffix(base, "/") + discoveryPath
	}
	body, _, err := v.get(ctx, base)
	if err != nil {
		return "", fmt.Errorf("discovery: %w", err)
	}
	var document struct {
		Issuer string `json:"issuer"`
		JWKS   string `json:"jwks_uri"`
	}
	if err := json.Unmarshal(body, &document); err != nil {
		return "", fmt.Errorf("%w: %s serves no JSON object", errDocument, base)
	}
	if document.Issuer != cluster.Issuer {
		return "", fmt.Errorf("%w: %s is of the issuer %q, the cluster's is %q", errDocument, base, shown(document.Issuer), cluster.Issuer)
	}
	if err := secureURL("its jwks_uri", document.JWKS); err != nil {
		return "", fmt.Errorf("%w: %w", errDocument, err)
	}
	return v.reachable(document.JWKS), nil
}

// reachable returns where to get the key set that a discovery document names.
// An API server names itself by its external address, which need not be the one
// at which the kubeconfig reaches it and must not get the credential.
func (v *visit) reachable(named string) string {
	u, err := url.Parse(named)
	if err != nil || v.server == nil || sameHost(u, v.server) || !strings.HasSuffix(u.Path, keysPath) {
		return named
	}
	return strings.TrimSuffix(v.server.String(), "/") + keysPath
}

// get returns the body and the header of a 200 answer.
func (v *visit) get(ctx context.Context, where string) ([]byte, http.Header, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("Accept", "application/jwk-set+json, application/json")
	response, err := v.client.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized, http.StatusForbidden:
		return nil, nil, fmt.Errorf("%s answered %s: configure a token file or a kubeconfig, or have the cluster publish its keys", where, response.Status)
	default:
		return nil, nil, fmt.Errorf("%s answered %s", where, response.Status)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, jwk.MaxBytes+1))
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("%s: %w", where, err)
	case len(body) > jwk.MaxBytes:
		return nil, nil, fmt.Errorf("%s: %w", where, jwk.ErrTooLarge)
	}
	return body, response.Header, nil
}

// lifetime returns for how long the answer with header is fresh (RFC 9111
// §4.2): maxLife if it does not say.
func lifetime(header http.Header) time.Duration {
	life := maxLife
	for directive := range strings.SplitSeq(strings.Join(header.Values("Cache-Control"), ","), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		switch strings.ToLower(name) {
		case "no-store", "no-cache":
			return 0
		case "max-age":
			if seconds, err := strconv.Atoi(strings.Trim(value, `"`)); err == nil {
				// Bounded first: a huge number must not overflow.
				life = time.Duration(min(max(seconds, 0), int(maxLife/time.Second))) * time.Second
			}
		}
	}
	if age, err := strconv.Atoi(header.Get("Age")); err == nil && age > 0 {
		life -= time.Duration(min(age, int(maxLife/time.Second))) * time.Second
	}
	return max(life, 0)
}
