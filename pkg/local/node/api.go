package node

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
)

// api is the API server as a node may use it.
type api struct {
	client.WithWatch
}

// Secret implements environ.Objects and volume.API.
func (a api) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	var object corev1.Secret
	err := a.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &object)
	return &object, err
}

// ConfigMap implements environ.Objects and volume.API.
func (a api) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	var object corev1.ConfigMap
	err := a.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &object)
	return &object, err
}

// Token implements volume.API.
func (a api) Token(
	ctx context.Context, namespace, serviceAccount string, spec authenticationv1.TokenRequestSpec,
) (*authenticationv1.TokenRequest, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: serviceAccount}}
	request := &authenticationv1.TokenRequest{Spec: spec}
	err := a.SubResource("token").Create(ctx, account, request)
	return request, err
}

// follow calls changed whenever the object called name may have changed, until
// ctx is done. list says which kind it is. A watch without a version begins with
// the object itself, so that nothing is missed between two of them.
func (a api) follow(ctx context.Context, clk clock.WithTicker, list client.ObjectList, namespace, name string, changed func()) {
	for ctx.Err() == nil {
		w, err := a.Watch(ctx, list, client.InNamespace(namespace),
			client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", name)})
		if err == nil {
			for range w.ResultChan() {
				changed()
			}
			w.Stop()
		}
		pause.For(ctx, clk, retryDelay)
	}
}
