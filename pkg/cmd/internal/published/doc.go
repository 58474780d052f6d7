// Package published reads from a hub which clusters it has and what they publish
// about their token issuers, for commands.
//
// It decides nothing: package keytrust says what counts of it, as it does for the
// hub's condition and for the token authorizer.
package published
