package drivertest

import (
	"context"
	"sync/atomic"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// requests counts what is asked of a hub.
type requests struct {
	// writes counts requests that change an object, with any verb and subresource.
	writes atomic.Int32
	// tokens are TokenRequests, which change none.
	tokens atomic.Int32
}

// counting returns a client of which r counts the requests.
func (r *requests) counting(hub client.WithWatch) client.WithWatch {
	return interceptor.NewClient(hub, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			r.writes.Add(1)
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			r.writes.Add(1)
			return c.Update(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			r.writes.Add(1)
			return c.Patch(ctx, o, p, opts...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			r.writes.Add(1)
			return c.Apply(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			r.writes.Add(1)
			return c.Delete(ctx, o, opts...)
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteAllOfOption) error {
			r.writes.Add(1)
			return c.DeleteAllOf(ctx, o, opts...)
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, name string, o, sub client.Object, opts ...client.SubResourceCreateOption) error {
			if _, ok := sub.(*authenticationv1.TokenRequest); ok {
				r.tokens.Add(1)
			} else {
				r.writes.Add(1)
			}
			return c.SubResource(name).Create(ctx, o, sub, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, name string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			r.writes.Add(1)
			return c.SubResource(name).Update(ctx, o, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			r.writes.Add(1)
			return c.SubResource(name).Patch(ctx, o, p, opts...)
		},
		SubResourceApply: func(ctx context.Context, c client.Client, name string, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			r.writes.Add(1)
			return c.SubResource(name).Apply(ctx, o, opts...)
		},
	})
}
