package names_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

func FuzzPullSecret(f *testing.F) {
	f.Add("default", "8f7d9c1e-0000-4000-8000-000000000001")
	f.Add(strings.Repeat("a", 253), "")
	f.Add(strings.Repeat("a", 240)+".-b", "1") // No name, but it is cut between its dots.
	f.Add(strings.Repeat("a", 239)+"."+strings.Repeat("b", 13), "1")
	f.Fuzz(func(t *testing.T, account, uid string) {
		if len(validation.IsDNS1123Subdomain(account)) > 0 {
			return
		}
		name := names.PullSecret(account, types.UID(uid))
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			t.Errorf("%s of %s: %v", name, account, problems)
		}
		if again := names.PullSecret(account, types.UID(uid)); again != name {
			t.Errorf("%s, then %s", name, again)
		}
	})
}

// TestPullSecretOfARecreatedAccount: the name follows from the UID, so that what
// is left of an earlier ServiceAccount is never taken for the new one's.
func TestPullSecretOfARecreatedAccount(t *testing.T) {
	t.Parallel()
	if a, b := names.PullSecret("app", "1"), names.PullSecret("app", "2"); a == b || !strings.HasPrefix(a, "app-pull-") {
		t.Errorf("%s and %s", a, b)
	}
}
