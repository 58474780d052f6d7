package review_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/review"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	const file = "kubeconfig"
	tests := []struct {
		name     string
		settings review.Settings
		want     string // Part of the error; empty for none.
	}{
		{"nothing is Never", review.Settings{}, ""},
		{"Never", review.Settings{Mode: review.Never, Audiences: []string{audience}}, ""},
		{"Always", review.Settings{Mode: review.Always, KubeconfigFile: file}, ""},
		{"Cached for the usual time", review.Settings{Mode: review.Cached, KubeconfigFile: file}, ""},
		{"Cached for the shortest time", review.Settings{Mode: review.Cached, KubeconfigFile: file, TTL: review.MinTTL}, ""},
		{"Cached for the longest time", review.Settings{Mode: review.Cached, KubeconfigFile: file, TTL: review.MaxTTL}, ""},
		{"Never with a credential", review.Settings{KubeconfigFile: file}, "its mode is Never"},
		{"Never with a time", review.Settings{Mode: review.Never, TTL: time.Minute}, "its mode is Never"},
		{"an unknown mode", review.Settings{Mode: "Sometimes", KubeconfigFile: file}, `"Sometimes" is not one of`},
		{"Always without a way to the cluster", review.Settings{Mode: review.Always}, "needs a kubeconfig file"},
		{"Always with a time", review.Settings{Mode: review.Always, KubeconfigFile: file, TTL: time.Minute}, "remove its TTL"},
		{"Cached for too short", review.Settings{Mode: review.Cached, KubeconfigFile: file, TTL: time.Second}, "from 10s to 5m"},
		{"Cached for too long", review.Settings{Mode: review.Cached, KubeconfigFile: file, TTL: time.Hour}, "from 10s to 5m"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			wantError(t, tt.settings.Validate(), tt.want)
		})
	}
}

func TestKubeconfigs(t *testing.T) {
	t.Parallel()
	settings := review.Settings{Mode: review.Always, KubeconfigFile: filepath.Join(t.TempDir(), "none")}
	_, err := review.New(settings, clock.RealClock{})
	wantError(t, err, "reading the kubeconfig of the reviews")

	settings.KubeconfigFile = filepath.Join(t.TempDir(), "insecure")
	insecure := strings.ReplaceAll(string(cp.Kubeconfig(t, "c")), "certificate-authority-data:", "insecure-skip-tls-verify: true\n    was:")
	if err := os.WriteFile(settings.KubeconfigFile, []byte(insecure), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = review.New(settings, clock.RealClock{})
	wantError(t, err, "switches off verification")

	_, err = review.NewTokenReview(&rest.Config{Host: "://"})
	wantError(t, err, "must begin with https://")
	settings.KubeconfigFile = filepath.Join(t.TempDir(), "plain")
	plain := strings.ReplaceAll(string(cp.Kubeconfig(t, "c")), "server: https://", "server: http://")
	if err := os.WriteFile(settings.KubeconfigFile, []byte(plain), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = review.New(settings, clock.RealClock{})
	wantError(t, err, "must begin with https://")
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Error(err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("got %v, want an error with %q", err, want)
	}
}
