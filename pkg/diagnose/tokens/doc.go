// Package tokens owns the checks of the token exchange on a hub: whether clusters publish keys
// that the hub trusts, whether the rules can be used and are safe, and whether the token
// authorizer may issue the tokens that they lead to.
//
// It only reads, decides nothing about a token, and prints nothing.
package tokens
