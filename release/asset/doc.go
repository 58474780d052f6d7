// Package asset names the files of a release, and where they can be downloaded from.
package asset
