// Package resident keeps small what a long-running process holds in memory.
//
// Every package that is linked into the binary is initialised at its start,
// and with it nearly all of the binary becomes resident, tens of megabytes of
// which a role then uses a few. Nothing gives these pages back but memory
// pressure. Trim does.
//
// It takes away only what the kernel can bring back from the binary itself:
// read-only pages of files of which no private copy was made. It changes no
// memory that anybody wrote, on no system and in no build mode.
package resident
