// Package pullsecrets owns the checks of image pull secrets: the controller and its leader, the
// pull secret of each selected ServiceAccount, and the Pods that cannot pull.
//
// It only reads, and prints nothing. The flags of the controller are not its own: a caller
// reads the configuration from the arguments of the Deployment.
package pullsecrets
