package bootstrap

import (
	"context"
	"fmt"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/access"
)

// Config returns the connection that a token has to a verified hub.
func (h Hub) Config(token Token) (*rest.Config, error) {
	data, err := h.Bootstrap(token.Secret()).EncodeBootstrap()
	if err != nil {
		return nil, err
	}
	return clientcmd.RESTConfigFromKubeConfig(data)
}

// joinRights lists the permissions that an agent needs with a bootstrap token.
func joinRights() []access.Right {
	clusters := schema.GroupResource{Group: clusterv1.GroupName, Resource: "managedclusters"}
	requests := schema.GroupResource{Group: certificatesv1.GroupName, Resource: "certificatesigningrequests"}
	return []access.Right{
		{Verb: "create", Resource: clusters},
		{Verb: "get", Resource: clusters},
		{Verb: "create", Resource: requests},
		{Verb: "get", Resource: requests},
		{Verb: "list", Resource: requests},
		{Verb: "watch", Resource: requests},
	}
}

// CheckAccess checks that the hub accepts the token and that the token has the
// permissions an agent needs. c is a connection with that token; now distinguishes an
// expired token from a rejected one. Every error about the token is an *Error.
func CheckAccess(ctx context.Context, c client.Client, token Token, now time.Time) error {
	if err := token.expired(now); err != nil {
		return err
	}
	missing, err := access.Missing(ctx, c, joinRights())
	switch {
	case apierrors.IsUnauthorized(err):
		return &Error{
			Kind:    Refused,
			Problem: "the hub does not accept the token: it was revoked, or it belongs to another hub",
			Try:     "print a new join command on the hub with: get token",
		}
	case err != nil:
		return err
	}
	kind := schema.GroupKind{Group: clusterv1.GroupName, Kind: "ManagedCluster"}
	if _, err := c.RESTMapper().RESTMapping(kind, clusterv1.GroupVersion.Version); err != nil {
		if apimeta.IsNoMatchError(err) {
			return &Error{
				Kind:    NotAHub,
				Problem: "the server is not a hub: it does not serve managedclusters.cluster.open-cluster-management.io",
				Try:     "check the address, or run init on that cluster first",
			}
		}
		return fmt.Errorf("hub API: %w", err)
	}
	if len(missing) > 0 {
		texts := make([]string, len(missing))
		for i, r := range missing {
			texts[i] = r.String()
		}
		return &Error{
			Kind:    Forbidden,
			Problem: "the token is not a bootstrap token: it may not " + strings.Join(texts, ", "),
			Try:     "print a join command on the hub with: get token",
		}
	}
	return nil
}

func (t Token) expired(now time.Time) error {
	if t.Expires.IsZero() || now.Before(t.Expires) {
		return nil
	}
	return &Error{
		Kind:    Expired,
		Problem: fmt.Sprintf("the hub token expired at %s, %s ago", t.Expires.UTC().Format(time.RFC3339), now.Sub(t.Expires).Round(time.Second)),
		Try:     "print a new join command on the hub with: get token",
	}
}
