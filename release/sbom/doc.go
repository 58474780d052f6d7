// Package sbom writes the software bill of materials of a program, as an SPDX 2.3
// document. What it lists is what the program says itself: the modules that the Go
// toolchain linked, in their versions.
package sbom
