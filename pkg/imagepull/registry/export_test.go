package registry

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// Report replaces the hosts that were found.
func (s *Source) Report(ctx context.Context, found ...string) error { return s.report(ctx, found) }

// Hosts are the names and addresses of a Service.
func (s Service) Hosts(found *corev1.Service, domain string) []string { return s.hosts(found, domain) }
