package legacytoken_test

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/legacytoken"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

const (
	legacy = "header.claims.signature"
	host   = "r.example.com"
)

// auths are the credentials of a pull secret: a password for each host.
func auths(t *testing.T, passwords map[string]string) json.RawMessage {
	t.Helper()
	entries := map[string]map[string]string{}
	for host, password := range passwords {
		entries[host] = map[string]string{"auth": base64.StdEncoding.EncodeToString([]byte("user:" + password))}
	}
	data, err := json.Marshal(entries)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// generic is a pull secret that a user made.
func generic(t *testing.T, passwords map[string]string) *corev1.Secret {
	t.Helper()
	data, err := json.Marshal(map[string]json.RawMessage{"auths": auths(t, passwords)})
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pull"},
		Type:       corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: data},
	}
}

// openShift is a pull secret as OpenShift made it from a legacy token.
func openShift(t *testing.T, passwords map[string]string) *corev1.Secret {
	t.Helper()
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "app-dockercfg-1", Finalizers: []string{names.OpenShiftLegacyToken, "example.com/other"},
			Annotations: map[string]string{
				names.AnnotationOpenShiftTokenSecret: "app-token-1", names.AnnotationOpenShiftTokenValue: passwords[host],
				names.AnnotationOpenShiftBinding: names.OpenShiftLegacy, "example.com/other": "x",
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: "app-token-1", UID: "t1", Controller: new(true)}},
		},
		Type: corev1.SecretTypeDockercfg, Data: map[string][]byte{corev1.DockerConfigKey: auths(t, passwords)},
	}
}

func account() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app", UID: "a1"}}
}

// TestRejection: nothing is handed over by which a credential would be lost, or about
// which another manager decides.
func TestRejection(t *testing.T) {
	t.Parallel()
	only := map[string]string{host: legacy}
	for _, tc := range []struct {
		name    string
		secret  *corev1.Secret
		change  func(*corev1.Secret)
		account func(*corev1.ServiceAccount)
		want    string
	}{
		{name: "one that a user made", secret: generic(t, only)},
		{name: "one of OpenShift's", secret: openShift(t, only)},
		{name: "for two hosts", secret: generic(t, map[string]string{host: legacy, "s.example.com": legacy})},
		{name: "with another password", secret: generic(t, map[string]string{host: legacy, "s.example.com": "p"}), want: "another credential for s.example.com"},
		{name: "OpenShift's with another token", secret: openShift(t, map[string]string{host: "another"}), want: "another credential for " + host},
		{
			name: "with an identity token", secret: generic(t, only), want: "another credential for " + host,
			change: func(s *corev1.Secret) {
				s.Data[corev1.DockerConfigJsonKey] = []byte(`{"auths":{"` + host + `":{"username":"u","password":"` + legacy + `","identitytoken":"i"}}}`)
			},
		},
		{
			name: "with user and password", secret: generic(t, only),
			change: func(s *corev1.Secret) {
				s.Data[corev1.DockerConfigJsonKey] = []byte(`{"auths":{"` + host + `":{"username":"u","password":"` + legacy + `"}}}`)
			},
		},
		{
			name: "with credential helpers", secret: generic(t, only), want: "other than registry credentials",
			change: func(s *corev1.Secret) {
				s.Data[corev1.DockerConfigJsonKey] = []byte(`{"auths":{},"credHelpers":{"e.example.com":"x"}}`)
			},
		},
		{name: "that cannot be read", secret: generic(t, only), change: func(s *corev1.Secret) { s.Data = nil }, want: "its content is invalid"},
		{name: "that is immutable", secret: generic(t, only), change: func(s *corev1.Secret) { s.Immutable = new(true) }, want: "immutable"},
		{name: "that is going", secret: generic(t, only), change: func(s *corev1.Secret) { s.DeletionTimestamp = new(metav1.Now()) }, want: "being deleted"},
		{name: "in another namespace", secret: generic(t, only), change: func(s *corev1.Secret) { s.Namespace = "other" }, want: "another namespace"},
		{
			name: "that Helm manages", secret: generic(t, only), want: "managed by Helm",
			change: func(s *corev1.Secret) { s.Labels = map[string]string{names.LabelManagedBy: "Helm"} },
		},
		{
			name: "that another object controls", secret: openShift(t, only), want: "Operator o controls it",
			change: func(s *corev1.Secret) {
				s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Operator", Name: "o", UID: "o1", Controller: new(true)}}
			},
		},
		{
			name: "of a ServiceAccount with another one", secret: openShift(t, only), want: "the pull secret of ServiceAccount app is other",
			account: func(a *corev1.ServiceAccount) {
				a.Annotations = map[string]string{names.AnnotationOpenShiftPullSecret: "other"}
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			of := account()
			if tc.change != nil {
				tc.change(tc.secret)
			}
			if tc.account != nil {
				tc.account(of)
			}
			got := legacytoken.Rejection(tc.secret, legacytoken.WithSum(old(), legacy), of)
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) || strings.Contains(got, legacy) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// TestHandOverAndBack: what a handover writes, and that it can be undone exactly
// while what others write stays.
func TestHandOverAndBack(t *testing.T) {
	t.Parallel()
	ours := metav1.OwnerReference{APIVersion: "v1", Kind: "ServiceAccount", Name: "app", UID: "a1"}
	for name, tc := range map[string]struct {
		before, want *corev1.Secret
	}{
		"one that a user made": {
			before: generic(t, map[string]string{host: legacy}),
			want: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Labels:          map[string]string{names.LabelManagedBy: names.ManagedByImagePull},
				Annotations:     map[string]string{names.AnnotationPullSecretAccount: "app"},
				OwnerReferences: []metav1.OwnerReference{ours},
			}},
		},
		"one of OpenShift's": {
			before: openShift(t, map[string]string{host: legacy}),
			want: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Annotations: map[string]string{
					names.AnnotationOpenShiftBinding: names.OpenShiftBound, names.AnnotationOpenShiftAccount: "app", "example.com/other": "x",
				},
				Finalizers:      []string{"example.com/other"},
				OwnerReferences: []metav1.OwnerReference{ours},
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			unchanged := tc.before.DeepCopy()
			handed := legacytoken.HandOver(tc.before, legacytoken.WithSum(old(), legacy), account())
			tc.want.Namespace, tc.want.Name, tc.want.Type, tc.want.Data = tc.before.Namespace, tc.before.Name, tc.before.Type, tc.before.Data
			if diff := cmp.Diff(tc.want, handed); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if again := legacytoken.HandOver(handed, legacytoken.WithSum(old(), legacy), account()); !cmp.Equal(again, handed) {
				t.Errorf("the second handover changes %s", cmp.Diff(handed, again))
			}
			live := handed.DeepCopy()
			metav1.SetMetaDataLabel(&live.ObjectMeta, "example.com/new", "y")
			back, err := legacytoken.TakeBack(live, tc.before, handed)
			if err != nil || back.Labels["example.com/new"] != "y" {
				t.Fatalf("labels %v: %v", back, err)
			}
			delete(back.Labels, "example.com/new")
			if len(back.Labels) == 0 {
				back.Labels = nil
			}
			if len(back.Annotations) == 0 {
				back.Annotations = nil
			}
			if diff := cmp.Diff(unchanged, back); diff != "" {
				t.Errorf("(-before +back)\n%s", diff)
			}
			for key := range handed.Annotations {
				theirs := handed.DeepCopy()
				theirs.Annotations[key] = "another"
				_, err := legacytoken.TakeBack(theirs, tc.before, handed)
				if ours := tc.before.Annotations[key] != handed.Annotations[key]; ours != (err != nil) {
					t.Errorf("with another %s: %v", key, err)
				}
			}
			live.OwnerReferences = nil
			if _, err := legacytoken.TakeBack(live, tc.before, handed); err == nil {
				t.Error("a handover that others changed is undone")
			}
		})
	}
}

func TestReferences(t *testing.T) {
	t.Parallel()
	ref := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	env := func(name string) []corev1.EnvVar {
		return []corev1.EnvVar{{ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref(name)}}}, {Value: "x"}}
	}
	from := func(name string) []corev1.EnvFromSource {
		return []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref(name)}}, {}}
	}
	spec := &corev1.PodSpec{
		Volumes: []corev1.Volume{
			{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "volume"}}},
			{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{}, {Secret: &corev1.SecretProjection{LocalObjectReference: ref("projected")}}}}}},
			{VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{NodePublishSecretRef: new(ref("csi"))}}},
			{VolumeSource: corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{SecretRef: new(ref("flex"))}}},
			{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		},
		InitContainers:      []corev1.Container{{Env: env("init-env"), EnvFrom: from("init-from")}},
		Containers:          []corev1.Container{{Env: env("env"), EnvFrom: from("from")}},
		EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Env: env("debug-env"), EnvFrom: from("debug-from")}}},
		ImagePullSecrets:    []corev1.LocalObjectReference{ref("pull")},
	}
	want := []string{"csi", "debug-env", "debug-from", "env", "flex", "from", "init-env", "init-from", "projected", "volume"}
	got := legacytoken.References(spec)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
