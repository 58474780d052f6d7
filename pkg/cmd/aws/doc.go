// Package aws is the "aws" command: what a user needs around the registration
// driver awsirsa, and the credential plugin of the kubeconfigs of such clusters.
// Prerequisites only prints: it neither reads nor writes anything in AWS or in a
// cluster. Check reads both, with the caller's own credentials, and writes nothing.
package aws
