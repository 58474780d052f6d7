package takeover

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
)

// helmReleases are the Helm releases that installed OCM: by its operator, and, once that
// is gone, by the resource that it served, which stays.
func (s *Survey) helmReleases() []types.NamespacedName {
	found := sets.New(origin.HelmRelease(s.resource()))
	if s.Found != nil {
		for _, d := range s.Found.Operators {
			found.Insert(d.Release)
		}
	}
	found.Delete(types.NamespacedName{})
	return found.UnsortedList()
}

// readHelm reads which Secrets Helm keeps those releases in. It reads no content: the
// values of a release may have the token of the hub.
func (s *Survey) readHelm(ctx context.Context, reader client.Reader) error {
	for _, release := range s.helmReleases() {
		secrets := &metav1.PartialObjectMetadataList{}
		secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
		err := reader.List(ctx, secrets, client.InNamespace(release.Namespace), client.MatchingLabels{"owner": "helm", "name": release.Name})
		if err != nil {
			return fmt.Errorf("secrets of the Helm release %s: %w", release, err)
		}
		for i := range secrets.Items {
			secret := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: release.Namespace, Name: secrets.Items[i].Name}}
			secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
			s.Helm = append(s.Helm, secret)
		}
	}
	return nil
}

// forgotten are the Helm releases that end.
func (s *Survey) forgotten() []Change {
	var releases []string
	for _, release := range s.helmReleases() {
		releases = append(releases, release.String())
	}
	return applying(candidate{
		len(s.Helm) > 0, "helm-release",
		"the Helm release " + strings.Join(releases, ", ") + " is forgotten, with the Secrets of its history: an upgrade of it would bring OCM back, and helm uninstall would remove the " +
			s.side.what + ". The rest of what it installed stays, without a release",
	})
}
