// Package credential answers one question for every credential in the fleet,
// be it a client certificate, an add-on's token or a pull secret: is it still
// good, and when must it be renewed? Its rules are pure functions of what was
// issued and of the time that is passed in; it never reads a clock, performs
// I/O or knows where a credential is kept.
package credential
