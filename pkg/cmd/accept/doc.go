// Package accept is the "accept" command: it accepts clusters that request to join
// the hub, or denies them. It owns the flags, the confirmation and the output;
// pkg/registration/approval decides and writes.
package accept
