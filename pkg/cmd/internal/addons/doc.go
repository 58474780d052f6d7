// Package addons owns what several commands say about add-ons: which hub they need,
// references to objects and completions.
//
// What the objects of a hub say about add-ons is in pkg/addon/inventory.
package addons
