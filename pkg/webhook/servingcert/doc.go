// Package servingcert issues and rotates what the hub's webhooks serve with: a
// CA in a Secret, a serving certificate in another, and a ConfigMap with the
// bundle of the CAs that are to be trusted. It also holds
// the certificate in the process that serves.
//
// Rules decides, purely, what has to be made; Reconciler reads and writes;
// Holder serves. Nobody reads a private key but the one who issues and the one
// who serves, and no key is ever in a file.
//
// Its invariant: a certificate is served only after its CA was in the bundle of
// everybody who checks it, and a CA leaves the bundle only after every
// certificate that it signed has expired. So rotation breaks no connection,
// whoever learns of it when.
package servingcert
