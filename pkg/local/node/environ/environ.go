package environ

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
)

// Objects reads what environments refer to.
type Objects interface {
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)
}

// Container is a container of a Pod about to start. The Pod's status must hold
// the addresses.
type Container struct {
	Pod  *corev1.Pod
	Spec *corev1.Container
	// Base are the variables that every container starts with; those of the
	// container override them.
	Base map[string]string
	// Objects resolves references.
	Objects Objects
}

// Variables is an environment.
type Variables map[string]string

// List returns the variables as NAME=VALUE, sorted.
func (v Variables) List() []string {
	list := make([]string, 0, len(v))
	for _, name := range slices.Sorted(maps.Keys(v)) {
		list = append(list, name+"="+v[name])
	}
	return list
}

// Expand expands each of words with the variables.
func (v Variables) Expand(words []string) []string {
	expanded := make([]string, 0, len(words))
	for _, word := range words {
		expanded = append(expanded, Expand(word, v.lookup))
	}
	return expanded
}

func (v Variables) lookup(name string) (string, bool) {
	value, ok := v[name]
	return value, ok
}

// Resolve computes the environment of c. The error says which object or key is
// missing; it is nil for what is marked optional.
func Resolve(ctx context.Context, c Container) (Variables, error) {
	vars := Variables(maps.Clone(c.Base))
	if vars == nil {
		vars = Variables{}
	}
	for _, source := range c.Spec.EnvFrom {
		if err := c.addAll(ctx, vars, source); err != nil {
			return nil, err
		}
	}
	for _, env := range c.Spec.Env {
		if env.ValueFrom == nil {
			vars[env.Name] = Expand(env.Value, vars.lookup)
			continue
		}
		value, ok, err := c.valueFrom(ctx, env.ValueFrom)
		if err != nil {
			return nil, err
		}
		if ok {
			vars[env.Name] = value
		}
	}
	return vars, nil
}

func (c Container) addAll(ctx context.Context, vars Variables, source corev1.EnvFromSource) error {
	var data map[string]string
	var err error
	switch {
	case source.ConfigMapRef != nil:
		data, err = c.configMap(ctx, source.ConfigMapRef.Name, source.ConfigMapRef.Optional)
	case source.SecretRef != nil:
		data, err = c.secret(ctx, source.SecretRef.Name, source.SecretRef.Optional)
	}
	for key, value := range data {
		vars[source.Prefix+key] = value
	}
	return err
}

// configMap returns the data of a ConfigMap, none if it is optional and missing.
func (c Container) configMap(ctx context.Context, name string, optional *bool) (map[string]string, error) {
	object, err := c.Objects.ConfigMap(ctx, c.Pod.Namespace, name)
	if err != nil {
		return nil, UnlessOptional(err, optional)
	}
	return object.Data, nil
}

// secret returns the data of a Secret, none if it is optional and missing.
func (c Container) secret(ctx context.Context, name string, optional *bool) (map[string]string, error) {
	object, err := c.Objects.Secret(ctx, c.Pod.Namespace, name)
	if err != nil {
		return nil, UnlessOptional(err, optional)
	}
	data := make(map[string]string, len(object.Data))
	for key, value := range object.Data {
		data[key] = string(value)
	}
	return data, nil
}

func (c Container) valueFrom(ctx context.Context, source *corev1.EnvVarSource) (string, bool, error) {
	switch {
	case source.FieldRef != nil:
		value, err := Field(c.Pod, source.FieldRef.FieldPath)
		return value, err == nil, err
	case source.ResourceFieldRef != nil:
		value, err := Resource(c.Pod, c.Spec.Name, source.ResourceFieldRef)
		return value, err == nil, err
	case source.ConfigMapKeyRef != nil:
		ref := source.ConfigMapKeyRef
		data, err := c.configMap(ctx, ref.Name, ref.Optional)
		if err != nil {
			return "", false, err
		}
		return pick(data, ref.Key, "ConfigMap "+ref.Name, ref.Optional)
	case source.SecretKeyRef != nil:
		ref := source.SecretKeyRef
		data, err := c.secret(ctx, ref.Name, ref.Optional)
		if err != nil {
			return "", false, err
		}
		return pick(data, ref.Key, "Secret "+ref.Name, ref.Optional)
	default:
		return "", false, fmt.Errorf("an environment variable of container %s has a source that local nodes do not support", c.Spec.Name)
	}
}

// UnlessOptional returns the error of reading an object, and nil if that is optional
// and does not exist.
func UnlessOptional(err error, optional *bool) error {
	if ptr.Deref(optional, false) && apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// pick returns the value of a key, which may be missing if it is optional.
func pick(data map[string]string, key, what string, optional *bool) (value string, ok bool, err error) {
	value, ok = data[key]
	if !ok && !ptr.Deref(optional, false) {
		err = fmt.Errorf("%s has no key %s", what, key)
	}
	return value, ok, err
}
