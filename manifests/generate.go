package manifests

//go:generate sh -c "go run ../scripts/generate-crds \"$(go list -m -f {{.Dir}} open-cluster-management.io/api)\" crds"
