package content

// Host is a registry.
type Host struct {
	// Name is how names of images begin: a host or an IP address, with or without a
	// port and a path.
	Name string
	// Audience is the audience that the registry expects in tokens; empty means the API
	// server's.
	Audience string
}
