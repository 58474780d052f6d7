// Package certificate approves the certificate requests of add-ons that are made from
// AddOnTemplates, and signs those for the signers that their templates name. The hub's
// own signer signs the others.
//
// It approves what the agent of the add-on's own cluster asks for in the identity that the
// template gives the add-on there, and nothing else. It never denies a request: an
// administrator may know more. The keys of signers are read when they are needed, by
// permissions that an administrator gives for each, and are held nowhere.
package certificate
