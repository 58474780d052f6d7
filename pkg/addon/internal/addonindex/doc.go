// Package addonindex is the cache's index of ManagedClusterAddOns by name, which finds those
// of a ClusterManagementAddOn on all clusters. It decides nothing.
package addonindex
