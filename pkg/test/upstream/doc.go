// Package upstream plants installations of OCM v1.3 that clusteradm makes, as
// plain objects with the names, labels, images, arguments and failure policies
// of the originals. No program of OCM runs: a test decides what its operators
// would do. It plants what a test of ours may meet, not all that OCM installs.
package upstream
