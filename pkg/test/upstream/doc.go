// Package upstream stands in for OCM v1.3: it plants installations that clusteradm makes,
// as plain objects with the names, labels, images, arguments and failure policies of the
// originals, and sends the requests of OCM's work agent and the answers of its webhook
// for ManifestWorks. No program of OCM runs: a test decides what its operators and agents
// would do. It has what a test of ours may meet, not all that OCM installs and does.
package upstream
