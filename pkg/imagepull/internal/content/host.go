package content

// Host is a registry.
type Host struct {
	// Name is how names of images begin: a host or an IP address, with or without a
	// port and a path.
	Name string
	// Audience is what the registry expects in tokens; empty means that they are for
	// the API server.
	Audience string
}
