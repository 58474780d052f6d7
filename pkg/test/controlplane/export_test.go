package controlplane

// Dir is the state directory of a control plane.
func Dir(cp *ControlPlane) string { return cp.dir }
