// Package hub owns the checks of a hub: its operator and components, the signer of client
// certificates, the address that clusters use, and the clusters and add-ons together.
//
// Its only write is a test certificate; it deletes the CSR again. It prints nothing.
package hub
