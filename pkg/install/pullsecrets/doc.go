// Package pullsecrets owns how the image pull secret controller is installed in a cluster
// and removed from it. The controller itself is package imagepull. It reads no flag, prints
// nothing and touches no Secret of users.
package pullsecrets
