package owner_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/owner"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// app is a ServiceAccount.
func app() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "app", UID: "a1"}}
}

// made is a ServiceAccount's pull secret as a form has it, changed.
func made(form owner.Form, change func(*corev1.Secret)) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: form.Metadata(app()), Type: corev1.SecretTypeDockercfg}
	if change != nil {
		change(secret)
	}
	return secret
}

func ownedBy(uid types.UID) func(*corev1.Secret) {
	return func(s *corev1.Secret) { s.OwnerReferences[0].UID = uid }
}

func legacy(s *corev1.Secret) {
	s.OwnerReferences = nil
	s.Annotations = map[string]string{
		names.AnnotationOpenShiftTokenSecret: "app-token", corev1.ServiceAccountNameKey: "app", corev1.ServiceAccountUIDKey: "a1",
	}
}

// TestRecognition: what is the pull secret of a ServiceAccount, what lacks a mark of
// it, and what is another's.
func TestRecognition(t *testing.T) {
	t.Parallel()
	none := func(*corev1.Secret) {}
	unowned := func(s *corev1.Secret) { s.OwnerReferences = nil }
	unmarked := func(s *corev1.Secret) { s.Annotations = nil }
	for _, tc := range []struct {
		name                 string
		change               func(*corev1.Secret)
		of, complete, adopts [2]bool // Generic, OpenShift.
	}{
		{name: "as it was made", change: none, of: [2]bool{true, true}, complete: [2]bool{true, true}, adopts: [2]bool{true, true}},
		{name: "without its owner", change: unowned, adopts: [2]bool{true, true}},
		{name: "without its annotations", change: unmarked, adopts: [2]bool{true, true}},
		{name: "without both", change: func(s *corev1.Secret) { unowned(s); unmarked(s) }, adopts: [2]bool{true, false}},
		{name: "without labels", change: func(s *corev1.Secret) { s.Labels = nil }, of: [2]bool{false, true}, complete: [2]bool{false, true}, adopts: [2]bool{true, true}},
		{name: "of the ServiceAccount from before", change: ownedBy("a0"), of: [2]bool{true, true}},
		{name: "of another type", change: func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque }},
		{name: "owned by something else", change: func(s *corev1.Secret) { s.OwnerReferences[0].Kind = "Secret" }, adopts: [2]bool{true, true}},
		{name: "named for another ServiceAccount", change: func(s *corev1.Secret) {
			for key := range s.Annotations {
				s.Annotations[key] = "other"
			}
		}},
		{name: "a legacy one", change: legacy},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for i, form := range []owner.Form{owner.Generic(), owner.OpenShift()} {
				secret := made(form, tc.change)
				_, of := form.Of(secret)
				if complete, adopts := form.Complete(secret, app()), form.Adopts(secret, app()); of != tc.of[i] || complete != tc.complete[i] || adopts != tc.adopts[i] {
					t.Errorf("form %d: of %v, complete %v, adopts %v", i, of, complete, adopts)
				}
			}
		})
	}
}

// TestChoose: the same Secret is chosen whatever else there is and whoever removed
// the annotation; a legacy one first.
func TestChoose(t *testing.T) {
	t.Parallel()
	form := owner.OpenShift()
	called := func(name string, more ...func(*corev1.Secret)) corev1.Secret {
		secret := made(form, func(s *corev1.Secret) { s.Name = name })
		for _, change := range more {
			change(secret)
		}
		return *secret
	}
	going := func(s *corev1.Secret) { s.DeletionTimestamp = &metav1.Time{} }
	own := names.OpenShiftPullSecret("app", "a1")
	for _, tc := range []struct {
		name, pointer, listed string
		secrets               []corev1.Secret
		want                  string
	}{
		{name: "there is none"},
		{name: "the one that is named", pointer: "b", secrets: []corev1.Secret{called("a"), called("b"), called("l", legacy), called(own)}, want: "b"},
		{name: "the one that is named is another's", pointer: "b", secrets: []corev1.Secret{called("a"), called("b", ownedBy("a0"))}, want: "a"},
		{name: "the one that is named is going", pointer: "b", secrets: []corev1.Secret{called("b", going)}},
		{name: "a legacy one", listed: "a", secrets: []corev1.Secret{called("a"), called("l", legacy), called(own)}, want: "l"},
		{name: "a legacy one of another", secrets: []corev1.Secret{called("a"), called("l", legacy, func(s *corev1.Secret) { s.Annotations[corev1.ServiceAccountUIDKey] = "a0" })}, want: "a"},
		{name: "the one that would be made", listed: "a", secrets: []corev1.Secret{called("a"), called(own)}, want: own},
		{name: "the one that is listed", listed: "b", secrets: []corev1.Secret{called("c"), called("b"), called("a")}, want: "b"},
		{name: "the first by name", secrets: []corev1.Secret{called("c"), called("a"), called("b")}, want: "a"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			account := app()
			if tc.pointer != "" {
				account.Annotations = map[string]string{form.Pointer(): tc.pointer}
			}
			account.ImagePullSecrets = []corev1.LocalObjectReference{{Name: tc.listed}}
			var got string
			if chosen := form.Choose(tc.secrets, account); chosen != nil {
				got = chosen.Name
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// TestAccounts: every mark brings the ServiceAccount, in either spelling.
func TestAccounts(t *testing.T) {
	t.Parallel()
	secret := &metav1.ObjectMeta{
		Annotations: map[string]string{
			names.AnnotationOpenShiftAcount: "misspelt", names.AnnotationOpenShiftAccount: "spelt",
			names.AnnotationOpenShiftTokenSecret: "t", corev1.ServiceAccountNameKey: "legacy",
		},
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ServiceAccount", Name: "owner"}, {APIVersion: "v1", Kind: "ServiceAccount", Name: "spelt"}, {APIVersion: "v1", Kind: "Secret", Name: "t"},
		},
	}
	if got, want := owner.OpenShift().Accounts(secret), []string{"legacy", "misspelt", "owner", "spelt"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := owner.OpenShift().Accounts(&metav1.ObjectMeta{}); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

// TestSuperseded: with another name in the annotation, and with that alone.
func TestSuperseded(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"": false, "another": true, names.OpenShiftPullSecret("app", "a1"): false} {
		for i, form := range []owner.Form{owner.Generic(), owner.OpenShift()} {
			account := app()
			account.Annotations = map[string]string{names.AnnotationOpenShiftPullSecret: name}
			if got := form.Superseded(made(form, nil), account); got != (want && i == 1) {
				t.Errorf("form %d, %q: %v", i, name, got)
			}
		}
	}
}
