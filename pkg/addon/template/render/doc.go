// Package render makes the manifests of an add-on from an AddOnTemplate: it fills in
// variables, and gives Deployments and DaemonSets the hub's credentials, the placement,
// the images, the proxy and the resources of the add-on's configuration.
//
// Its functions are pure. Values are only ever put into strings, so that none changes the
// structure of a manifest.
package render
