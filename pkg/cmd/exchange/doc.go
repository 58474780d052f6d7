// Package exchange is the "exchange" command: it shows and changes which
// workloads of the managed clusters may exchange their tokens for tokens of the
// hub, and tries it out.
//
// The packages under tokenauthorizer read and write the rules (rulestore), decide what a rule
// means, explain it (explanation) and test an exchange (exchangetest): this command has no
// rules of its own. A token is
// read from a file or from the standard input, never from an argument, and is
// never printed except by the commands whose purpose that is.
package exchange
