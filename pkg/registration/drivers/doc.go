// Package drivers names the registration drivers of clusters, and is the one place that
// does. A new driver has its own folder below package driver, an entry here, and its
// documentation.
//
// It decides nothing: commands pass the catalog to what installs, operates and accepts.
package drivers
