package takeover

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// readTemplates reads what AddOnTemplates ask for. What is granted already is not known: as
// long as OCM's roles are there, its add-on manager, whose ServiceAccount has the name of
// ours, may do all of that.
func (s *Survey) readTemplates(ctx context.Context, reader client.Reader) error {
	objs, err := list(ctx, reader, schema.GroupVersionKind{Group: addonv1alpha1.GroupName, Version: "v1alpha1", Kind: "AddOnTemplate"})
	if err != nil {
		return err
	}
	for i := range objs {
		var template addonv1alpha1.AddOnTemplate
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objs[i].Object, &template); err != nil {
			return fmt.Errorf("AddOnTemplate %s: %w", objs[i].GetName(), err)
		}
		s.Grants = append(s.Grants, grants(&template.Spec)...)
	}
	slices.Sort(s.Grants)
	s.Grants = slices.Compact(s.Grants)
	return nil
}

// grants are the permissions that our add-on manager needs for a template.
// See docs/adr/0020-grants-for-templates.md.
func grants(spec *addonv1alpha1.AddOnTemplateSpec) []string {
	var needed []string
	for _, registration := range spec.Registration {
		if client := registration.KubeClient; client != nil && registration.Type == addonv1alpha1.RegistrationTypeKubeClient {
			for _, permission := range client.HubPermissions {
				needed = append(needed, permissionGrants(spec.AddonName, permission)...)
			}
		}
		if signer := registration.CustomSigner; signer != nil && registration.Type == addonv1alpha1.RegistrationTypeCustomSigner {
			ca := signer.SigningCA
			needed = append(needed, fmt.Sprintf("sign on %s %q in namespace %s with approve and sign on signers %q and get on its Secret %q",
				names.ResourceCustomSigners, names.CustomSignerGrant(spec.AddonName, signer.SignerName, ca.Name), cmp.Or(ca.Namespace, names.HubNamespace),
				signer.SignerName, ca.Name))
		}
	}
	return needed
}

func permissionGrants(addOn string, permission addonv1alpha1.HubPermissionConfig) []string {
	one := func(scope, where, kind, role string) []string {
		return []string{fmt.Sprintf("bind on %s/%s %q%s with bind on %ss %q",
			names.ResourceHubPermissions, scope, names.HubPermissionGrant(addOn, kind, role), where, strings.ToLower(kind), role)}
	}
	switch {
	case permission.CurrentCluster != nil && permission.Type == addonv1alpha1.HubPermissionsBindingCurrentCluster:
		return one(names.HubPermissionsCurrentCluster, "", "ClusterRole", permission.CurrentCluster.ClusterRoleName)
	case permission.SingleNamespace != nil && permission.Type == addonv1alpha1.HubPermissionsBindingSingleNamespace:
		single := permission.SingleNamespace
		return one(names.HubPermissionsSingleNamespace, " in namespace "+single.Namespace, single.RoleRef.Kind, single.RoleRef.Name)
	}
	return nil
}
