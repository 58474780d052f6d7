// Package rulestore owns where the rules of the token exchange are stored: it reads them from
// the hub or from a file, and writes those on the hub.
//
// Each writer owns the fields that it writes, by server-side apply. Its invariants: nothing
// is written when nothing has changed, and a change that another client makes meanwhile is
// not lost. It decides nothing: what a rule means is in package policy.
package rulestore
