package names

// CLIVersion is the apiVersion of what commands print in the machine formats. No API
// server serves it.
const CLIVersion = "cli.open-cluster-management.io/v1"
