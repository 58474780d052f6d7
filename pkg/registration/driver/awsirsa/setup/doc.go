// Package setup owns the way of the driver awsirsa from settings to what runs: the
// fields and annotations of a ClusterManager and a Klusterlet, the flags of the
// registration controller and of the agent, and the IAM roles of their pods.
//
// Settings are evaluated without a request. Requests are sent by what a user asks for:
// checks, a connection as the agent, and grants with credentials of the user.
package setup
