// Package gates sorts feature gates to the components that read them. It turns none on or
// off by itself.
package gates
