package identity

// Identifier is identifier: published check values are of names that no ARN has.
var Identifier = identifier
