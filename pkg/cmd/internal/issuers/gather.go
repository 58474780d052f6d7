package issuers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/issuer/trust"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Gather returns the issuers of all clusters by name: what is published on the
// hub, unless hub is nil, and what c configures, unless that is nil. A cluster
// with configured keys is believed by those alone.
func Gather(ctx context.Context, hub client.Reader, c *config.Config) ([]Issuer, error) {
	byCluster := map[string]Issuer{}
	if hub != nil {
		published, err := Published(ctx, hub)
		if err != nil {
			return nil, err
		}
		for _, issuer := range published {
			byCluster[issuer.Cluster] = issuer
		}
	}
	if c != nil {
		unpublished := "its agent publishes no keys: switch it on with issuer publish on the managed cluster"
		if hub == nil {
			unpublished = "its agent publishes the keys on the hub, which was not asked"
		}
		configure(byCluster, c, unpublished)
	}
	list := make([]Issuer, 0, len(byCluster))
	for _, issuer := range byCluster {
		list = append(list, issuer)
	}
	slices.SortFunc(list, func(a, b Issuer) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return list, nil
}

// Published returns what clusters publish on the hub and what the hub says of it.
func Published(ctx context.Context, hub client.Reader) ([]Issuer, error) {
	var clusters clusterv1.ManagedClusterList
	if err := hub.List(ctx, &clusters); err != nil {
		return nil, fmt.Errorf("clusters: %w", err)
	}
	var maps corev1.ConfigMapList
	if err := hub.List(ctx, &maps, client.MatchingFields{"metadata.name": names.IssuerConfigMap}); err != nil {
		return nil, fmt.Errorf("published issuers: %w", err)
	}
	var list []Issuer
	for i := range clusters.Items {
		cluster := &clusters.Items[i]
		at := slices.IndexFunc(maps.Items, func(m corev1.ConfigMap) bool { return m.Namespace == cluster.Name })
		said := apimeta.FindStatusCondition(cluster.Status.Conditions, names.ConditionIssuerTrusted)
		switch {
		case at >= 0:
			list = append(list, published(cluster.Name, &maps.Items[at], said))
		case said != nil:
			list = append(list, published(cluster.Name, &corev1.ConfigMap{}, said))
		}
	}
	return list, nil
}

func published(cluster string, m *corev1.ConfigMap, said *metav1.Condition) Issuer {
	issuer := Issuer{Cluster: cluster, Issuer: m.Data[names.IssuerKeyIssuer], Source: SourceHub}
	if at, err := time.Parse(time.RFC3339, m.Data[names.IssuerKeyPublishedAt]); err == nil {
		issuer.PublishedAt = &at
	}
	if _, err := trust.Parse(m); err == nil {
		set, _ := jwk.Parse([]byte(m.Data[names.IssuerKeyJWKS]))
		issuer.setKeys(set)
	}
	if said == nil {
		issuer.Reason = ReasonNotJudged
		issuer.Message = "the hub has not judged these keys yet: the cluster has not joined, or the hub's registration controller does not run"
		return issuer
	}
	issuer.Trusted, issuer.Reason, issuer.Message = said.Status == metav1.ConditionTrue, said.Reason, said.Message
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
			issuer = configured(entry)
		} else if issuer.Cluster == "" {
			issuer = Issuer{Cluster: entry.Name(), Issuer: entry.Keys.Issuer, Source: SourceHub, Reason: ReasonNotPublished, Message: unpublished}
		}
		if want := entry.Keys.Issuer; entry.Keys.Source.Hub && want != "" && issuer.Issuer != want && issuer.Trusted {
			issuer.Trusted, issuer.Reason = false, ReasonIssuerDiffers
			issuer.Message = fmt.Sprintf("it publishes the issuer %q and is configured with %q: leave the issuer out of the configuration, or mend it", issuer.Issuer, want)
		}
		issuer.Audiences = entry.Token.Audiences
		byCluster[entry.Name()] = issuer
	}
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
	case source.File != "":
		issuer.Source, issuer.Location = SourceFile, source.File
		issuer.Message = "its keys are read from a file"
		var err error
		if data, err = cli.ReadFile(source.File); err != nil {
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
