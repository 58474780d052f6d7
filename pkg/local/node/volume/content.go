package volume

import (
	"context"
	"fmt"
	"io/fs"
	"maps"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node/environ"
)

const defaultMode = 0o644

// content collects the files of one volume.
type content struct {
	volumes *Volumes
	pod     *corev1.Pod
	volume  string
	files   map[string]File
}

// keys says which keys of an object become which files.
type keys struct {
	what     string
	items    []corev1.KeyToPath
	mode     *int32
	optional *bool
}

func (c *content) collect(ctx context.Context, source *corev1.VolumeSource) error {
	switch {
	case source.Secret != nil:
		s := source.Secret
		return c.secret(ctx, s.SecretName, keys{items: s.Items, mode: s.DefaultMode, optional: s.Optional})
	case source.ConfigMap != nil:
		s := source.ConfigMap
		return c.configMap(ctx, s.Name, keys{items: s.Items, mode: s.DefaultMode, optional: s.Optional})
	case source.DownwardAPI != nil:
		return c.downward(source.DownwardAPI.Items, source.DownwardAPI.DefaultMode)
	case source.Projected != nil:
		for i := range source.Projected.Sources {
			if err := c.projection(ctx, &source.Projected.Sources[i], source.Projected.DefaultMode); err != nil {
				return err
			}
		}
		return nil
	default:
		return fmt.Errorf("this kind of volume is %w, which know secret, configMap, projected, downwardAPI and emptyDir", ErrUnsupported)
	}
}

func (c *content) projection(ctx context.Context, source *corev1.VolumeProjection, mode *int32) error {
	switch {
	case source.Secret != nil:
		s := source.Secret
		return c.secret(ctx, s.Name, keys{items: s.Items, mode: mode, optional: s.Optional})
	case source.ConfigMap != nil:
		s := source.ConfigMap
		return c.configMap(ctx, s.Name, keys{items: s.Items, mode: mode, optional: s.Optional})
	case source.DownwardAPI != nil:
		return c.downward(source.DownwardAPI.Items, mode)
	case source.ServiceAccountToken != nil:
		return c.token(ctx, source.ServiceAccountToken)
	default:
		return fmt.Errorf("this kind of projection is %w", ErrUnsupported)
	}
}

func (c *content) secret(ctx context.Context, name string, k keys) error {
	k.what = "Secret " + name
	object, err := c.volumes.api.Secret(ctx, c.pod.Namespace, name)
	if err != nil {
		return environ.UnlessOptional(err, k.optional)
	}
	return c.add(object.Data, k)
}

func (c *content) configMap(ctx context.Context, name string, k keys) error {
	k.what = "ConfigMap " + name
	object, err := c.volumes.api.ConfigMap(ctx, c.pod.Namespace, name)
	if err != nil {
		return environ.UnlessOptional(err, k.optional)
	}
	data := make(map[string][]byte, len(object.Data)+len(object.BinaryData))
	for key, value := range object.Data {
		data[key] = []byte(value)
	}
	maps.Copy(data, object.BinaryData)
	return c.add(data, k)
}

func (c *content) add(data map[string][]byte, k keys) error {
	if len(k.items) == 0 {
		for key, value := range data {
			c.files[key] = File{Data: value, Mode: mode(k.mode)}
		}
		return nil
	}
	for _, item := range k.items {
		value, ok := data[item.Key]
		if !ok {
			if ptr.Deref(k.optional, false) {
				continue
			}
			return fmt.Errorf("%s has no key %s", k.what, item.Key)
		}
		if err := checkPath(item.Path); err != nil {
			return err
		}
		c.files[item.Path] = File{Data: value, Mode: mode(item.Mode, k.mode)}
	}
	return nil
}

// mode is the first that is set.
func mode(modes ...*int32) fs.FileMode {
	for _, m := range modes {
		if m != nil {
			return fs.FileMode(*m) & fs.ModePerm //nolint:gosec // the API allows 0 to 0777
		}
	}
	return defaultMode
}

func (c *content) downward(items []corev1.DownwardAPIVolumeFile, fallback *int32) error {
	for _, item := range items {
		if err := checkPath(item.Path); err != nil {
			return err
		}
		var value string
		var err error
		if item.FieldRef != nil {
			value, err = environ.Field(c.pod, item.FieldRef.FieldPath)
		} else if item.ResourceFieldRef != nil {
			value, err = environ.Resource(c.pod, item.ResourceFieldRef.ContainerName, item.ResourceFieldRef)
		}
		if err != nil {
			return err
		}
		c.files[item.Path] = File{Data: []byte(value), Mode: mode(item.Mode, fallback)}
	}
	return nil
}

// token adds a service account token, a new one if the last one is due.
func (c *content) token(ctx context.Context, source *corev1.ServiceAccountTokenProjection) error {
	if err := checkPath(source.Path); err != nil {
		return err
	}
	key := c.volume + "/" + source.Path
	now := c.volumes.clock.Now()
	held, ok := c.volumes.tokens[key]
	if !ok || !now.Before(held.renew) {
		request, err := c.volumes.api.Token(ctx, c.pod.Namespace, c.pod.Spec.ServiceAccountName, authenticationv1.TokenRequestSpec{
			Audiences:         audiences(source.Audience),
			ExpirationSeconds: source.ExpirationSeconds,
			BoundObjectRef: &authenticationv1.BoundObjectReference{
				APIVersion: "v1", Kind: "Pod", Name: c.pod.Name, UID: c.pod.UID,
			},
		})
		if err != nil {
			return fmt.Errorf("token of service account %s: %w", c.pod.Spec.ServiceAccountName, err)
		}
		life := request.Status.ExpirationTimestamp.Sub(now)
		held = token{value: request.Status.Token, renew: now.Add(life * 4 / 5)}
		c.volumes.tokens[key] = held
	}
	c.files[source.Path] = File{Data: []byte(held.value), Mode: 0o600}
	return nil
}

func audiences(audience string) []string {
	if audience == "" {
		return nil
	}
	return []string{audience}
}
