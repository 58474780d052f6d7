package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
)

// API is the source of volumes.
type API interface {
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)
	// Token asks for a token of a service account.
	Token(ctx context.Context, namespace, serviceAccount string, spec authenticationv1.TokenRequestSpec) (*authenticationv1.TokenRequest, error)
}

// ErrUnsupported says that local nodes do not know a kind of volume.
var ErrUnsupported = errors.New("not supported by local nodes")

// Volumes are the volumes of one Pod. Its methods must not be called
// concurrently.
type Volumes struct {
	dir    string
	api    API
	clock  clock.PassiveClock
	tokens map[string]token
}

// token is an issued token and when to ask for the next one.
type token struct {
	value string
	renew time.Time
}

// New returns the volumes of a Pod, whose directories are made below dir.
func New(dir string, api API, clk clock.PassiveClock) *Volumes {
	return &Volumes{dir: dir, api: api, clock: clk, tokens: map[string]token{}}
}

// Dir is the directory of a volume.
func (v *Volumes) Dir(name string) string { return filepath.Join(v.dir, name) }

// Sync makes or updates every volume of the Pod and returns when it must be
// called again for the sake of a token; the zero time is never.
func (v *Volumes) Sync(ctx context.Context, pod *corev1.Pod) (next time.Time, err error) {
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		if err := v.sync(ctx, pod, volume); err != nil {
			return time.Time{}, fmt.Errorf("volume %s: %w", volume.Name, err)
		}
	}
	for _, t := range v.tokens {
		if next.IsZero() || t.renew.Before(next) {
			next = t.renew
		}
	}
	return next, nil
}

func (v *Volumes) sync(ctx context.Context, pod *corev1.Pod, volume *corev1.Volume) error {
	if volume.EmptyDir != nil {
		return makeEmptyDir(v.Dir(volume.Name))
	}
	c := content{volumes: v, pod: pod, volume: volume.Name, files: map[string]File{}}
	if err := c.collect(ctx, &volume.VolumeSource); err != nil {
		return err
	}
	dir := v.Dir(volume.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	_, err := Write(dir, c.files)
	return err
}

func makeEmptyDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.Chmod(dir, 0o777) //nolint:gosec // as on a node; its parent is private
}

// References are the source objects of a Pod's volumes.
type References struct {
	Secrets, ConfigMaps []string
}

// ReferencesOf returns the objects whose change calls for Sync.
func ReferencesOf(pod *corev1.Pod) References {
	var r References
	for i := range pod.Spec.Volumes {
		source := &pod.Spec.Volumes[i].VolumeSource
		switch {
		case source.Secret != nil:
			r.Secrets = append(r.Secrets, source.Secret.SecretName)
		case source.ConfigMap != nil:
			r.ConfigMaps = append(r.ConfigMaps, source.ConfigMap.Name)
		case source.Projected != nil:
			for j := range source.Projected.Sources {
				projection := &source.Projected.Sources[j]
				if projection.Secret != nil {
					r.Secrets = append(r.Secrets, projection.Secret.Name)
				}
				if projection.ConfigMap != nil {
					r.ConfigMaps = append(r.ConfigMaps, projection.ConfigMap.Name)
				}
			}
		}
	}
	return r
}

// checkPath refuses a path that would leave the volume.
func checkPath(path string) error {
	if !filepath.IsLocal(path) || strings.HasPrefix(path, "..") {
		return fmt.Errorf("the path %q leaves the volume", path)
	}
	return nil
}
