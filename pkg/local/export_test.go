package local

// LockDir takes the lock of Up and Down in a directory.
func LockDir(dir string) (release func(), err error) { return layout(dir).lockDir() }
