package controlplane

// Store returns what begins and finishes the first start of the etcd in dir.
func Store(dir string) (begin, finish func() error) {
	c := &ControlPlane{config: Config{Dir: dir}}
	return c.beginStore, c.finishStore
}
