// Package volume makes the content of a Pod's volumes on the host and keeps it
// up to date: Secrets, ConfigMaps, the downward API, projected volumes with
// service account tokens, and empty directories.
//
// Files change as a kubelet changes them: a reader sees the old content or the
// new one of all files of a volume, never a mix, because one symbolic link is
// swapped. Tokens are bound to the Pod and renewed after 80 % of their life.
// It mounts nothing and watches nothing: its caller calls Sync when an object has
// changed or the time that Sync returned has passed.
// has changed or the time that Sync returned has come.
package volume
