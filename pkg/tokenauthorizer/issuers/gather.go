package issuers

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/keytrust"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
)

// Gather returns the issuers of all clusters by name: what is published on the
// hub, unless hub is nil, and what c configures, unless that is nil. A cluster
// with configured keys is trusted by those alone. With a hub, c is made of the rules there,
// and keys that are fetched are trusted if the token authorizer has them.
func Gather(ctx context.Context, hub client.Reader, c *config.Config) ([]Issuer, error) {
	byCluster := map[string]Issuer{}
	if hub != nil {
		list, err := Published(ctx, hub)
		if err != nil {
			return nil, err
		}
		for _, issuer := range list {
			byCluster[issuer.Cluster] = issuer
		}
	}
	if c != nil {
		unpublished := "its agent publishes no keys"
		if hub == nil {
			unpublished = "its agent publishes the keys on the hub, which was not asked"
		}
		configure(byCluster, c, unpublished)
	}
	if hub != nil && c != nil {
		if err := loaded(ctx, hub, byCluster); err != nil {
			return nil, err
		}
	}
	list := make([]Issuer, 0, len(byCluster))
	for _, issuer := range byCluster {
		list = append(list, issuer)
	}
	slices.SortFunc(list, func(a, b Issuer) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return list, nil
}

// Published returns what clusters publish on the hub and what counts of it.
func Published(ctx context.Context, hub client.Reader) ([]Issuer, error) {
	candidates, err := Candidates(ctx, hub)
	if err != nil {
		return nil, err
	}
	publishers := Publishers(candidates)
	var list []Issuer
	for _, candidate := range candidates {
		// A cluster that is denied loses what it published: it is listed for that.
		if denied := candidate.Cluster.Denied().Reason != ""; candidate.Data != nil || denied && candidate.Cluster.Joined {
			list = append(list, publishes(candidate, publishers))
		}
	}
	return list, nil
}

func publishes(candidate keytrust.Candidate, publishers func(string) []keytrust.Candidate) Issuer {
	decision := keytrust.Decide(candidate, publishers)
	issuer := Issuer{
		Cluster: candidate.Cluster.Name, Issuer: candidate.Data[names.IssuerKeyIssuer], Source: SourceHub,
		Trusted: decision.Trusted(), Reason: decision.Rejection.Reason, Message: decision.Message, Unproven: decision.Unproven,
	}
	if issuer.Trusted {
		issuer.Reason = names.ReasonKeysTrusted
	}
	if at, err := time.Parse(time.RFC3339, candidate.Data[names.IssuerKeyPublishedAt]); err == nil {
		issuer.PublishedAt = &at
	}
	issuer.setKeys(jwk.Set{Keys: decision.Counting})
	return issuer
}

// configure puts what a configuration says over what is published. Unpublished
// is said of a cluster that should publish.
func configure(byCluster map[string]Issuer, c *config.Config, unpublished string) {
	everybody := []string(nil)
	for i := range c.Clusters {
		if entry := &c.Clusters[i]; entry.Name() == policy.AnyCluster {
			everybody = entry.Token.Audiences
		}
	}
	for name, issuer := range byCluster {
		issuer.Audiences = everybody
		byCluster[name] = issuer
	}
	for i := range c.Clusters {
		entry := &c.Clusters[i]
		if entry.Name() == policy.AnyCluster {
			continue
		}
		issuer := byCluster[entry.Name()]
		if !entry.Keys.Source.Hub {
			issuer = unlessDenied(issuer, configured(entry))
		} else if issuer.Cluster == "" {
			issuer = Issuer{Cluster: entry.Name(), Issuer: entry.Keys.Issuer, Source: SourceHub, Reason: ReasonNotPublished, Message: unpublished}
		}
		if want := entry.Keys.Issuer; entry.Keys.Source.Hub && want != "" && issuer.Issuer != want && issuer.Trusted {
			issuer.Trusted, issuer.Reason = false, ReasonIssuerDiffers
			issuer.Message = fmt.Sprintf("it publishes the issuer %q and is configured with %q: leave the issuer out of the configuration, or correct it", issuer.Issuer, want)
		}
		issuer.Audiences = entry.Token.Audiences
		byCluster[entry.Name()] = issuer
	}
}

// unlessDenied is an issuer of a configuration, untrusted if the hub denies the cluster: then
// no key counts for it, an administrator's included.
func unlessDenied(published, issuer Issuer) Issuer {
	if published.Reason == names.ReasonClusterNotAccepted {
		issuer.Trusted, issuer.Reason, issuer.Message = false, published.Reason, published.Message
	}
	return issuer
}

// configured is a cluster whose keys an administrator named.
func configured(entry *config.Cluster) Issuer {
	source := entry.Keys.Source
	issuer := Issuer{
		Cluster: entry.Name(), Issuer: entry.Keys.Issuer, Trusted: true, Reason: ReasonConfigured, From: source,
		Message: "its keys are in the configuration",
	}
	data := source.Inline
	switch {
	case entry.Unkeyed:
		issuer.Source = SourceInline
		issuer.Trusted, issuer.Reason, issuer.Message = false, ReasonKeysInvalid, unusable(entry)
		return issuer
	case source.File != "":
		issuer.Source, issuer.Location = SourceFile, source.File
		issuer.Message = "its keys are read from a file"
		var err error
		if data, err = os.ReadFile(source.File); err != nil {
			return issuer // It is read elsewhere.
		}
	case source.URI != "":
		issuer.Source, issuer.Location, issuer.Message = SourceURI, source.URI, "its keys are fetched"
		return issuer
	case source.Discovery != nil:
		issuer.Source, issuer.Location = SourceDiscovery, cmp.Or(source.Discovery.URL, entry.Keys.Issuer)
		issuer.Message = "its keys are discovered"
		return issuer
	default:
		issuer.Source = SourceInline
	}
	set, err := jwk.Parse(data)
	if err != nil {
		issuer.Trusted, issuer.Reason, issuer.Message = false, ReasonKeysInvalid, err.Error()
		return issuer
	}
	issuer.setKeys(set)
	return issuer
}

// loaded puts what the token authorizer says of keys that it fetches over what is configured.
func loaded(ctx context.Context, hub client.Reader, byCluster map[string]Issuer) error {
	var policies v1alpha1.TokenExchangePolicyList
	if err := hub.List(ctx, &policies); err != nil {
		return fmt.Errorf("token exchange policies: %w", err)
	}
	for i := range policies.Items {
		p := &policies.Items[i]
		issuer, ok := byCluster[p.Namespace]
		if !ok || p.Name != v1alpha1.Name || issuer.Source != SourceURI && issuer.Source != SourceDiscovery ||
			issuer.Reason == names.ReasonClusterNotAccepted {
			continue
		}
		keys := apimeta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionKeysLoaded)
		if keys == nil || keys.ObservedGeneration != p.Generation {
			issuer.Trusted, issuer.Reason, issuer.Message = false, ReasonNotLoaded, "no token authorizer has read its keys yet"
		} else {
			issuer.Trusted, issuer.Reason, issuer.Message = keys.Status == metav1.ConditionTrue, keys.Reason, keys.Message
		}
		byCluster[p.Namespace] = issuer
	}
	return nil
}

// unusable says why the keys of an entry do not count.
func unusable(entry *config.Cluster) string {
	for _, f := range entry.Findings {
		if f.Severity == policy.Error {
			return f.String()
		}
	}
	return "its keys cannot be used"
}
