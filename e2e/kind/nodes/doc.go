// Package nodes holds the tests of what only real nodes show: kubelets that cannot pull
// an image or mount a Secret's next version, names that clusters look up, network policies
// of a CNI, and nodes that stop, lose their network or start again.
//
// Every test needs the clusters of `make e2e-kind`, the hub and cluster1, and has them for
// itself, so none runs next to another. It knows the product by its binary alone, and
// leaves the clusters as it found them: joined and available.
package nodes
