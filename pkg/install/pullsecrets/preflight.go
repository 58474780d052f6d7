package pullsecrets

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// check gathers what an installation depends on and reports every finding.
func (r Runner) check(ctx context.Context, p Values, objs []client.Object) ([]install.Finding, error) {
	facts, err := install.GatherCommon(ctx, r.Client, r.Discovery, objs)
	if err != nil {
		return nil, err
	}
	live, err := r.deployment(ctx)
	if err != nil {
		return nil, err
	}
	findings := append(install.CheckCommon(facts, minPullSecrets, "the image pull secret controller"),
		p.CheckImage(facts, p.pod(live).Image, containerImage(live))...)
	for _, judge := range []func(context.Context, Values, []client.Object) ([]install.Finding, error){r.checkForeign, r.checkNamespaces, r.checkLeftBehind} {
		found, err := judge(ctx, p, objs)
		if err != nil {
			return nil, err
		}
		findings = append(findings, found...)
	}
	return findings, nil
}

// checkForeign refuses to take over what another installer made.
func (r Runner) checkForeign(ctx context.Context, _ Values, objs []client.Object) ([]install.Finding, error) {
	var findings []install.Finding
	for _, obj := range objs {
		switch obj.GetObjectKind().GroupVersionKind().Kind {
		case "Namespace", "ServiceAccount", "Secret": // These grant no permissions.
			continue
		}
		live, ok := obj.DeepCopyObject().(client.Object)
		if !ok {
			continue
		}
		if live, err := lookup.Get(ctx, r.Client, client.ObjectKeyFromObject(obj), live); err != nil {
			return nil, err
		} else if live == nil || install.Owned(live) {
			continue
		}
		findings = append(findings, install.Finding{
			Check: install.CheckExisting, Severity: install.Fatal,
			Message: r.Describe(obj) + " exists and was not made by this command",
			Try:     "delete it, or take it over with --skip-check=" + install.CheckExisting,
		})
	}
	return findings, nil
}

// checkNamespaces looks for the namespaces that get permissions.
func (r Runner) checkNamespaces(ctx context.Context, p Values, _ []client.Object) ([]install.Finding, error) {
	wanted := slices.Clone(p.Controller.Namespaces)
	if p.Controller.ConfigMap.Namespace != "" {
		wanted = append(wanted, p.Controller.ConfigMap.Namespace)
	}
	var findings []install.Finding
	for _, name := range wanted {
		err := r.Client.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
		switch {
		case apierrors.IsNotFound(err):
			findings = append(findings, install.Finding{
				Check: install.CheckNamespaces, Severity: install.Fatal,
				Message: fmt.Sprintf("the namespace %s does not exist", name), Try: "create it first, or leave it out",
			})
		case err != nil && !apierrors.IsForbidden(err):
			return nil, fmt.Errorf("namespace %s: %w", name, err)
		}
	}
	return findings, nil
}

// checkLeftBehind warns of pull secrets that would no longer be renewed.
func (r Runner) checkLeftBehind(ctx context.Context, p Values, _ []client.Object) ([]install.Finding, error) {
	if len(p.Controller.Namespaces) == 0 {
		return nil, nil
	}
	secrets := &metav1.PartialObjectMetadataList{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	err := r.Client.List(ctx, secrets, client.MatchingLabels{names.LabelManagedBy: names.ManagedByImagePull})
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("pull secrets: %w", err)
	}
	var left []string
	for i := range secrets.Items {
		if namespace := secrets.Items[i].Namespace; !slices.Contains(p.Controller.Namespaces, namespace) && !slices.Contains(left, namespace) {
			left = append(left, namespace)
		}
	}
	if len(left) == 0 {
		return nil, nil
	}
	return []install.Finding{{
		Check: install.CheckNamespaces, Severity: install.Warning,
		Message: "the pull secrets in these namespaces are no longer renewed, and expire: " + excerpt.Of(strings.Join(left, ", "), install.ListedNames),
		Try:     "name the namespaces too, or opt out there first",
	}}, nil
}
