// Package watch has the event filters and mappings that controllers share: which
// updates matter, and which objects an event is for. It reads caches only. What it
// filters and maps is tested with the controllers, on real API servers.
package watch
