// Package image packs programs into container images: one image for each platform
// below one index, with nothing in it but the program. It writes an index as an archive
// or to a registry, and never needs a container engine.
package image
