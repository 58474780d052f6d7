package roots

// The parts of Fallback, which a process can call once.
var (
	SystemHasRoots = systemHasRoots
	Public         = public
)

// Bundle is a file in which a distribution keeps its roots.
func Bundle() string { return bundles()[1] }
