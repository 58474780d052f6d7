// Package pemutil reads and writes the PEM forms of keys, certificates and
// certificate requests. It decides nothing about their content and never puts
// key material into an error.
package pemutil
