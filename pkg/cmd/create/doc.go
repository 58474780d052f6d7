// Package create is the "create" command: it creates what clusters are to have. It owns
// the flags, the confirmation and the output; pkg/work/delivery decides and writes.
package create
