// Package deletion is the "delete" command: it deletes what clusters have. It owns the
// flags, the confirmation and the output; pkg/work/delivery writes.
package deletion
