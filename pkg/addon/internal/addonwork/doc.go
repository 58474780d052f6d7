// Package addonwork owns how the add-on manager sees the ManifestWorks of add-ons: which
// they are, and whether they were applied. Its cache holds a hash instead of each
// manifest. It never writes.
package addonwork
