// Package setup owns the way of the driver awsirsa from settings to what runs: the
// fields and annotations of a ClusterManager and a Klusterlet, the flags of the
// registration controller and of the agent, and the IAM roles of their pods.
//
// It sends no request.
package setup
