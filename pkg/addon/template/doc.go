// Package template deploys the add-ons that are made from AddOnTemplates, so that an
// add-on needs no code on the hub: it registers them, gives their agents the permissions
// that the template names, makes their ManifestWorks and reports their health. Package
// render makes the manifests, package certificate the certificates.
//
// It owns the ManifestWorks addon-<add-on>-deploy-<n> and addon-<add-on>-pre-delete, the
// RoleBindings of hubPermissions, and of a ManagedClusterAddOn made from a template the
// finalizer addon-pre-delete and the status but the configurations and what is reported
// about them. It never chooses a configuration: it deploys the template that
// status.configReferences names, in the version of its hash, and leaves what is deployed
// while there is no such version.
//
// Nothing that an agent writes gives it permissions of another: only the identities of
// the add-on in its own cluster are bound, and no group that spans clusters. The package
// is tested in pkg/addon.
package template
