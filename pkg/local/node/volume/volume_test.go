package volume_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node/volume"
)

type api struct {
	secret map[string][]byte
	now    func() time.Time
	issued int
}

func (a *api) Secret(_ context.Context, _, name string) (*corev1.Secret, error) {
	if name != "secret" {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name)
	}
	return &corev1.Secret{Data: a.secret}, nil
}

func (a *api) ConfigMap(_ context.Context, _, name string) (*corev1.ConfigMap, error) {
	if name != "config" {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
	}
	return &corev1.ConfigMap{Data: map[string]string{"ca.crt": "CA"}, BinaryData: map[string][]byte{"bin": {0}}}, nil
}

func (a *api) Token(_ context.Context, _, sa string, spec authenticationv1.TokenRequestSpec) (*authenticationv1.TokenRequest, error) {
	a.issued++
	return &authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{
		Token:               fmt.Sprint(sa, " ", spec.BoundObjectRef.UID, " ", spec.Audiences, " ", a.issued),
		ExpirationTimestamp: metav1.NewTime(a.now().Add(time.Duration(*spec.ExpirationSeconds) * time.Second)),
	}}, nil
}

func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Name()[0] == '.' {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			files[entry.Name()+"/"] = ""
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[entry.Name()] = fmt.Sprintf("%s %o", data, info.Mode())
	}
	return files
}

func TestSync(t *testing.T) {
	t.Parallel()
	clk := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	a := &api{secret: map[string][]byte{"a": []byte("1"), "b": []byte("2")}, now: clk.Now}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "uid"},
		Spec: corev1.PodSpec{ServiceAccountName: "sa", Volumes: []corev1.Volume{
			{Name: "empty", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
				SecretName: "secret", DefaultMode: ptr.To[int32](0o400),
			}}},
			{Name: "none", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
				SecretName: "none", Optional: new(true),
			}}},
			{Name: "api", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: ptr.To[int64](1000), Audience: "aud"}},
				{ConfigMap: &corev1.ConfigMapProjection{
					LocalObjectReference: corev1.LocalObjectReference{Name: "config"},
					Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "dir/ca.crt"}},
				}},
				{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
					{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}},
				}}},
			}}}},
		}},
	}
	v := volume.New(t.TempDir(), a, clk)
	sync := func() time.Time {
		next, err := v.Sync(t.Context(), pod)
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	next := sync()
	if want := clk.Now().Add(800 * time.Second); !next.Equal(want) {
		t.Errorf("next token at %v, want after 80%% of its life, %v", next, want)
	}
	check := func(name string, want map[string]string) {
		t.Helper()
		if diff := cmp.Diff(want, tree(t, v.Dir(name))); diff != "" {
			t.Errorf("volume %s (-want +got):\n%s", name, diff)
		}
	}
	check("empty", map[string]string{})
	check("none", map[string]string{})
	check("secret", map[string]string{"a": "1 400", "b": "2 400"})
	check("api", map[string]string{"token": "sa uid [aud] 1 600", "dir/": "", "namespace": "ns 644"})

	content, err := os.Readlink(filepath.Join(v.Dir("secret"), "..data"))
	if err != nil {
		t.Fatal(err)
	}
	sync()
	if again, _ := os.Readlink(filepath.Join(v.Dir("secret"), "..data")); again != content {
		t.Error("a volume was written though nothing had changed")
	}
	a.secret = map[string][]byte{"b": []byte("3"), "c": []byte("4")}
	clk.SetTime(next)
	sync()
	check("secret", map[string]string{"b": "3 400", "c": "4 400"})
	check("api", map[string]string{"token": "sa uid [aud] 2 600", "dir/": "", "namespace": "ns 644"})
	if _, err := os.Stat(filepath.Join(v.Dir("secret"), content)); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the old content is still there")
	}
}

func TestSyncErrors(t *testing.T) {
	t.Parallel()
	for want, source := range map[string]corev1.VolumeSource{
		`volume v: secrets "none" not found`: {Secret: &corev1.SecretVolumeSource{SecretName: "none"}},
		"volume v: ConfigMap config has no key x": {ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "config"}, Items: []corev1.KeyToPath{{Key: "x", Path: "x"}},
		}},
		"volume v: this kind of volume is not supported by local nodes, which know secret, configMap, projected, downwardAPI and emptyDir": {
			HostPath: &corev1.HostPathVolumeSource{Path: "/"},
		},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: source}}}}
		_, err := volume.New(t.TempDir(), &api{}, clocktesting.NewFakePassiveClock(time.Time{})).Sync(t.Context(), pod)
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
