// Package exchange is the "exchange" command: it shows and changes which
// workloads of the managed clusters may exchange their tokens for tokens of the
// hub, and tries it out.
//
// What a rule means is decided by the packages under tokenauthorizer, which the token
// authorizer runs as well: this command has no rules of its own. A token is
// read from a file or from the standard input, never from an argument, and is
// never printed except by the commands whose purpose that is.
package exchange
