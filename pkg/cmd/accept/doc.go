// Package accept is the "accept" command: it makes a joining cluster a member
// of the fleet, or refuses it.
//
// Acceptance is a desired state: the command succeeds whenever the cluster ends
// accepted with a credential issued, whatever happened before. It never accepts
// a cluster while two requesters or two keys claim its name, until a person
// chose one by its fingerprint.
package accept
