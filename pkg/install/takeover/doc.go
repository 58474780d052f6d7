// Package takeover replaces a running installation of OCM by ours, in an order in
// which no request is rejected and nothing that ManifestWorks deployed is touched.
//
// Survey reads what exists. From that, and without I/O, come the Changes, which are
// what a user loses and has to accept, the problems that forbid it, and the Plan: the
// steps before ours is installed and the steps after. Mover performs steps. A plan is
// made from what is found, so an interrupted one is continued by making it again.
//
// Its invariants: a controller of OCM has stopped before one of ours starts; a Service
// that the API server calls has pods that answer at any time; a webhook configuration is
// deleted after our admission policies exist and before its webhook stops. The package
// deletes only what OCM's operator installed, and Helm's record of the release that
// installed that. It never touches a resource of users, a credential, an
// AppliedManifestWork or a CRD with objects.
package takeover
