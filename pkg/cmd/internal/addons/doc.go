// Package addons owns what several commands say about add-ons: which hub they need, what
// keeps a hub controller from running, references to objects and completions.
//
// What the objects of a hub say about add-ons is in pkg/addon/inventory.
package addons
