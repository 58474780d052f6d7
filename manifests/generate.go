package manifests

//go:generate go run ../scripts/generate-crds .. crds
