package status

import "sigs.k8s.io/controller-runtime/pkg/event"

// ChangesStatus is changesStatus.
func ChangesStatus(e event.UpdateEvent) bool { return changesStatus(e) }
