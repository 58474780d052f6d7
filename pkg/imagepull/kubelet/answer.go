package kubelet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
	kjson "sigs.k8s.io/json"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
)

const (
	// requestKind and responseKind are the kinds of what the kubelet sends and reads.
	requestKind  = "CredentialProviderRequest"
	responseKind = "CredentialProviderResponse"
	// maxRequest is the most of a request that is read; real ones take a few KiB.
	maxRequest = 1 << 20
	// early is how long before its end a token is no longer taken from the
	// kubelet's cache: the pull that begins with it must still finish.
	early = time.Minute
)

// Answer reads the kubelet's request from in and writes the credential to out.
func Answer(in io.Reader, out io.Writer, username string, now time.Time) error {
	request, err := read(in)
	if err != nil {
		return err
	}
	response, err := respond(request, username, now)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(out).Encode(response); err != nil {
		return fmt.Errorf("write the response to the kubelet: %w", err)
	}
	return nil
}

// read reads a request. Its errors quote nothing of it: it holds a token.
func read(in io.Reader) (kubeletv1.CredentialProviderRequest, error) {
	var request kubeletv1.CredentialProviderRequest
	data, err := io.ReadAll(io.LimitReader(in, maxRequest+1))
	if err != nil {
		return request, fmt.Errorf("read the kubelet's request: %w", err)
	}
	if len(data) > maxRequest {
		return request, fmt.Errorf("the kubelet's request is longer than %d bytes", maxRequest)
	}
	if kjson.UnmarshalCaseSensitivePreserveInts(data, &request) != nil {
		return request, errors.New("the kubelet's request is not JSON of the expected form")
	}
	if want := kubeletv1.SchemeGroupVersion.String(); request.APIVersion != want || request.Kind != requestKind {
		return request, fmt.Errorf("the request on stdin is not a %s of %s; the kubelet must run this program, with apiVersion: %s in its CredentialProviderConfig",
			requestKind, want, want)
	}
	return request, nil
}

// respond makes the answer to a request.
func respond(request kubeletv1.CredentialProviderRequest, username string, now time.Time) (*kubeletv1.CredentialProviderResponse, error) {
	host, _, _ := strings.Cut(request.Image, "/")
	if host == "" {
		return nil, errors.New("the kubelet's request has no image")
	}
	if request.ServiceAccountToken == "" {
		return nil, errors.New("the kubelet's request has no ServiceAccount token; set tokenAttributes in its CredentialProviderConfig")
	}
	var claims struct {
		Expires int64 `json:"exp"`
	}
	if jwk.UnverifiedClaims(request.ServiceAccountToken, &claims) != nil || claims.Expires <= 0 {
		return nil, errors.New("the ServiceAccount token in the kubelet's request is malformed")
	}
	return &kubeletv1.CredentialProviderResponse{
		TypeMeta:      metav1.TypeMeta{APIVersion: request.APIVersion, Kind: responseKind},
		CacheKeyType:  kubeletv1.RegistryPluginCacheKeyType,
		CacheDuration: &metav1.Duration{Duration: cacheable(time.Unix(claims.Expires, 0), now)},
		Auth:          map[string]kubeletv1.AuthConfig{host: {Username: username, Password: request.ServiceAccountToken}},
	}, nil
}

// cacheable is how long a token may be cached. One that seems to have expired is
// passed on all the same: the node's clock may be wrong, and the registry decides.
func cacheable(expires, now time.Time) time.Duration { return max(0, expires.Sub(now)-early) }
