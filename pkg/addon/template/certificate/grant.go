package certificate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonpatch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/access"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// secretOf names the Secret with the key of a signer.
func (r *Reconciler) secretOf(signer *addonv1alpha1.CustomSignerRegistrationConfig) client.ObjectKey {
	return client.ObjectKey{Namespace: cmp.Or(signer.SigningCA.Namespace, r.Namespace), Name: signer.SigningCA.Name}
}

// authorize returns an error that names all that is missing unless an administrator granted
// the add-on this signer. The status of the add-on has the same for all its signers. An
// add-on whose signers were never denied costs one access review and no write.
func (r *Reconciler) authorize(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn, template *addonv1alpha1.AddOnTemplateSpec,
	signer *addonv1alpha1.CustomSignerRegistrationConfig,
) error {
	missing, err := r.missing(ctx, addOn.Name, signer)
	if err != nil {
		return err
	}
	reported := apimeta.IsStatusConditionFalse(addOn.Status.Conditions, names.ConditionCustomSignersGranted)
	if len(missing) == 0 && !reported {
		return nil
	}
	condition, err := r.condition(ctx, addOn.Name, template)
	if err != nil {
		return err
	}
	_, err = addonpatch.SetConditions(ctx, r.Client, Owner, addOn, r.Clock.Now(), condition)
	if len(missing) > 0 {
		err = errors.Join(denial(signer, missing), err)
	}
	return err
}

// condition says which custom signers of its template an add-on is not granted.
func (r *Reconciler) condition(ctx context.Context, addOn string, template *addonv1alpha1.AddOnTemplateSpec) (metav1.Condition, error) {
	var denied []string
	for i := range template.Registration {
		signer := template.Registration[i].CustomSigner
		if template.Registration[i].Type != addonv1alpha1.RegistrationTypeCustomSigner || signer == nil {
			continue
		}
		if reserved(signer.SignerName) {
			denied = append(denied, errReserved(signer.SignerName).Error())
			continue
		}
		missing, err := r.missing(ctx, addOn, signer)
		if err != nil {
			return metav1.Condition{}, err
		}
		if len(missing) > 0 {
			denied = append(denied, denial(signer, missing).Error())
		}
	}
	if len(denied) > 0 {
		return metav1.Condition{
			Type: names.ConditionCustomSignersGranted, Status: metav1.ConditionFalse,
			Reason: names.ReasonSignerNotGranted, Message: strings.Join(denied, ". "),
		}, nil
	}
	return metav1.Condition{
		Type: names.ConditionCustomSignersGranted, Status: metav1.ConditionTrue,
		Reason: names.ReasonSignersGranted, Message: "the add-on may use the signers of its template",
	}, nil
}

// denial says who has to be granted what before an add-on may use a signer.
func denial(signer *addonv1alpha1.CustomSignerRegistrationConfig, missing []access.Right) error {
	return fmt.Errorf("the add-on may not use the signer %s with the Secret %s; let the ServiceAccount %s %s",
		signer.SignerName, signer.SigningCA.Name, names.HubAddOnManagerServiceAccount, access.Phrase(missing))
}

// missing returns the permissions that an add-on lacks to use a signer with its Secret;
// nothing if an administrator granted it. The add-on manager's own permissions for
// signers and Secrets serve all add-ons, so they decide nothing.
// See docs/adr/0020-grants-for-templates.md.
func (r *Reconciler) missing(ctx context.Context, addOn string, signer *addonv1alpha1.CustomSignerRegistrationConfig) ([]access.Right, error) {
	secret := r.secretOf(signer)
	missing, err := access.Missing(ctx, r.Client, []access.Right{{
		Verb: "sign", Resource: schema.GroupResource{Group: addonv1beta1.GroupName, Resource: names.ResourceCustomSigners},
		Namespace: secret.Namespace, Name: names.CustomSignerGrant(addOn, signer.SignerName, secret.Name),
	}})
	if err != nil || len(missing) == 0 {
		return nil, err
	}
	others, err := r.lacks(ctx, signer.SignerName, secret)
	return append(missing, others...), err
}

// lacks returns what the add-on manager lacks to use a signer: the verbs that the API server
// asks for, by the name of the signer or of all of its domain, and to read the key.
func (r *Reconciler) lacks(ctx context.Context, signer string, secret client.ObjectKey) ([]access.Right, error) {
	domain, _, _ := strings.Cut(signer, "/")
	var missing []access.Right
	for _, verb := range []string{"approve", "sign"} {
		one := access.Right{Verb: verb, Resource: schema.GroupResource{Group: certificatesv1.GroupName, Resource: "signers"}, Name: signer}
		all := one
		all.Name = domain + "/*"
		lacking, err := access.Missing(ctx, r.Client, []access.Right{one, all})
		if err != nil {
			return nil, err
		}
		if len(lacking) > 1 {
			missing = append(missing, one)
		}
	}
	key, err := access.Missing(ctx, r.Client, []access.Right{{
		Verb: "get", Resource: schema.GroupResource{Resource: "secrets"}, Namespace: secret.Namespace, Name: secret.Name,
	}})
	return append(missing, key...), err
}
