package conversion

import (
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Fields of a ManagedClusterAddOn that the versions do not share.
const (
	fieldInstallNamespace = "installNamespace" // v1alpha1
	fieldConfigReferences = "configReferences"
	fieldRegistrations    = "registrations"
	fieldKubeClientDriver = "kubeClientDriver" // v1alpha1
)

// The two types of a registration in v1beta1, which are also the names of their
// fields.
const (
	typeKubeClient   = "kubeClient"
	typeCustomSigner = "customSigner"
)

// Fields of a registration and of its subject.
const (
	fieldSignerName = "signerName"
	fieldSubject    = "subject"
	fieldDriver     = "driver"
	fieldUnitsAlpha = "organizationUnit"
	fieldUnitsBeta  = "organizationUnits"
)

// managedClusterAddOnToBeta converts from v1alpha1.
func managedClusterAddOnToBeta(s *scope) error {
	spec, ok, err := mapAt(s.obj, "spec")
	if err != nil {
		return err
	}
	var namespace *string
	if ok {
		value, found, err := stringAt(spec, "spec", fieldInstallNamespace)
		if err != nil {
			return err
		}
		if found {
			namespace = &value
		}
		delete(spec, fieldInstallNamespace)
	}
	if err := s.annotate(names.AnnotationInstallNamespace, namespace); err != nil {
		return err
	}
	status, ok, err := mapAt(s.obj, "status")
	if err != nil || !ok {
		return err
	}
	s.carryField(status, fieldAddOnConfiguration)
	references := element{forward: configReferenceToBeta, back: configReferenceToAlpha}
	if err := s.convertList(status, "status", fieldConfigReferences, references); err != nil {
		return err
	}
	return s.registrationsToBeta(status)
}

// managedClusterAddOnToAlpha converts from v1beta1.
func managedClusterAddOnToAlpha(s *scope) error {
	spec, ok, err := mapAt(s.obj, "spec")
	if err != nil {
		return err
	}
	annotations, _, err := mapAt(s.obj, "metadata", "annotations")
	if err != nil {
		return err
	}
	namespace, found, err := stringAt(annotations, "metadata.annotations", names.AnnotationInstallNamespace)
	if err != nil {
		return err
	}
	if ok {
		delete(spec, fieldInstallNamespace)
		if found {
			spec[fieldInstallNamespace] = namespace
		}
	}
	if err := s.annotate(names.AnnotationInstallNamespace, nil); err != nil {
		return err
	}
	status, ok, err := mapAt(s.obj, "status")
	if err != nil || !ok {
		return err
	}
	s.restoreField(status, fieldAddOnConfiguration)
	references := element{forward: configReferenceToAlpha, back: configReferenceToBeta}
	if err := s.convertList(status, "status", fieldConfigReferences, references); err != nil {
		return err
	}
	return s.registrationsToAlpha(status)
}

// configReferenceToBeta drops the name that v1alpha1 repeats.
func configReferenceToBeta(alpha map[string]any) map[string]any {
	return without(alpha, "name", "namespace")
}

// configReferenceToAlpha repeats the name of the desired configuration.
func configReferenceToAlpha(beta map[string]any) map[string]any {
	out := without(beta, "name", "namespace")
	desired, ok := beta["desiredConfig"].(map[string]any)
	if !ok {
		return out
	}
	for _, key := range []string{"name", "namespace"} {
		if value, ok := desired[key]; ok {
			out[key] = value
		}
	}
	return out
}

// registrationsToBeta converts the registrations and moves the one driver of v1alpha1
// to its places in v1beta1: to the first registration of type kubeClient, and to the
// others that had no other one.
func (s *scope) registrationsToBeta(status map[string]any) error {
	driver := fieldOf(status, fieldKubeClientDriver)
	delete(status, fieldKubeClientDriver)
	first := true
	setDrivers := func(out []converted) {
		for _, registration := range out {
			if registration.entry["type"] != typeKubeClient {
				continue
			}
			if first || !registration.restored {
				setDriver(registration.entry, driver)
			}
			first = false
		}
	}
	err := s.convertList(status, "status", fieldRegistrations, element{forward: registrationToBeta, back: registrationToAlpha, finish: setDrivers})
	if first && driver != nil {
		s.carry[fieldKubeClientDriver] = *driver
	}
	return err
}

// registrationsToAlpha converts the registrations. Their one driver is the driver of
// the first registration of type kubeClient.
func (s *scope) registrationsToAlpha(status map[string]any) error {
	delete(status, fieldKubeClientDriver)
	entries, _, err := itemsOf(status, "status", fieldRegistrations)
	if err != nil {
		return err
	}
	driver := fieldOf(s.carried, fieldKubeClientDriver)
	if i := slices.IndexFunc(entries, func(entry map[string]any) bool { return entry["type"] == typeKubeClient }); i >= 0 {
		driver = driverOf(entries[i])
	}
	if driver != nil {
		status[fieldKubeClientDriver] = *driver
	}
	back := func(alpha map[string]any) map[string]any {
		beta := registrationToBeta(alpha)
		if beta["type"] == typeKubeClient {
			setDriver(beta, driver)
		}
		return beta
	}
	return s.convertList(status, "status", fieldRegistrations, element{forward: registrationToAlpha, back: back})
}

// driverOf returns the driver of a registration, nil if it has none.
func driverOf(registration map[string]any) *any {
	config, ok := registration[typeKubeClient].(map[string]any)
	if !ok {
		return nil
	}
	return fieldOf(config, fieldDriver)
}

// setDriver sets the driver of a registration, or for nil takes it away.
func setDriver(registration map[string]any, driver *any) {
	config, ok := registration[typeKubeClient].(map[string]any)
	if driver == nil {
		delete(config, fieldDriver)
		return
	}
	if !ok {
		config = map[string]any{}
		registration[typeKubeClient] = config
	}
	config[fieldDriver] = *driver
}

// registrationToBeta converts a registration without its driver.
func registrationToBeta(alpha map[string]any) map[string]any {
	out := without(alpha, fieldSignerName, fieldSubject, "type", typeKubeClient, typeCustomSigner)
	signer, hasSigner := alpha[fieldSignerName]
	subject, hasSubject := alpha[fieldSubject].(map[string]any)
	config := map[string]any{}
	if signer == certificatesv1.KubeAPIServerClientSignerName {
		if hasSubject {
			config[fieldSubject] = without(subject, fieldUnitsAlpha)
		}
		out["type"], out[typeKubeClient] = typeKubeClient, config
		return out
	}
	if hasSigner {
		config[fieldSignerName] = signer
	}
	if hasSubject {
		subject = without(subject)
		rename(subject, fieldUnitsAlpha, fieldUnitsBeta)
		config[fieldSubject] = subject
	}
	out["type"], out[typeCustomSigner] = typeCustomSigner, config
	return out
}

// registrationToAlpha is its inverse.
func registrationToAlpha(beta map[string]any) map[string]any {
	out := without(beta, fieldSignerName, fieldSubject, "type", typeKubeClient, typeCustomSigner)
	var config map[string]any
	switch beta["type"] {
	case typeKubeClient:
		config, _ = beta[typeKubeClient].(map[string]any)
		out[fieldSignerName] = certificatesv1.KubeAPIServerClientSignerName
	case typeCustomSigner:
		config, _ = beta[typeCustomSigner].(map[string]any)
		if signer, ok := config[fieldSignerName]; ok {
			out[fieldSignerName] = signer
		}
	}
	subject, ok := config[fieldSubject].(map[string]any)
	if !ok {
		return out
	}
	subject = without(subject)
	rename(subject, fieldUnitsBeta, fieldUnitsAlpha)
	if out[fieldSignerName] == certificatesv1.KubeAPIServerClientSignerName {
		delete(subject, fieldUnitsAlpha) // These only custom signers know.
	}
	out[fieldSubject] = subject
	return out
}
