package main

import (
	"strings"

	"github.com/distribution/distribution/v3/registry/auth"
)

// builder is the ServiceAccount of each namespace that may push.
const builder = "builder"

// account is a ServiceAccount.
type account struct{ namespace, name string }

// may reports whether a ServiceAccount may have access: those of a namespace pull
// from the repositories below its name, and its builder pushes there.
func (a account) may(access auth.Access) bool {
	if access.Type != "repository" || !strings.HasPrefix(access.Name, a.namespace+"/") {
		return false
	}
	return access.Action == "pull" || access.Action == "push" && a.name == builder
}

// String is the ServiceAccount as NAMESPACE/NAME.
func (a account) String() string { return a.namespace + "/" + a.name }
