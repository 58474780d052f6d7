// Package pullsecrets is the "pull-secrets" command: it installs and removes the
// image pull secret controller, looks at what the controller keeps, and is the
// kubelet's credential provider plugin, which does without Secrets.
//
// It owns flags and output. What is read and written is in pkg/imagepull and
// pkg/install/pullsecrets. It never prints a token, but for the plugin, which has to.
package pullsecrets
