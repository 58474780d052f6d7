// Package hubspec owns how an administrator says in what way a hub registers
// clusters by AWS IAM: in the fields and annotations of a ClusterManager, or in
// flags. It converts between these and validates them, so that the command line,
// the operator and the controller accept the same settings.
package hubspec
