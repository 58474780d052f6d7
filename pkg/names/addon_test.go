package names_test

import (
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

func TestParseTokenServiceAccount(t *testing.T) {
	t.Parallel()
	good := names.TokenServiceAccount{Namespace: "c1", Name: "c1-a-agent", UID: "0b1c"}
	for message, want := range map[string]*names.TokenServiceAccount{
		good.Message():                          &good,
		"ServiceAccount c1/a-agent is ready":    nil,
		"ServiceAccount c1/a-agent (UID: x":     nil,
		"ServiceAccount c1/a-agent (UID: )":     nil,
		"ServiceAccount a-agent (UID: x) is":    nil,
		"ServiceAccount /a-agent (UID: x) is":   nil,
		"ServiceAccount c1/ (UID: x) is ready":  nil,
		"ServiceAccount c1/a/b (UID: x) is":     nil,
		"c1/a-agent (UID: x) is ready":          nil,
		"ServiceAccount c 1/a (UID: x) is":      nil,
		"":                                      nil,
		"Failed to apply token infrastructure:": nil,
	} {
		got, ok := names.ParseTokenServiceAccount(message)
		if ok != (want != nil) || ok && got != *want {
			t.Errorf("%q: got %+v, %v", message, got, ok)
		}
	}
}

func FuzzParseTokenServiceAccount(f *testing.F) {
	f.Add("ServiceAccount c1/a-agent (UID: 1-2) is ready")
	f.Add("ServiceAccount c1/a (UID: ) (UID: 2)")
	f.Fuzz(func(t *testing.T, message string) {
		got, ok := names.ParseTokenServiceAccount(message)
		if !ok {
			return
		}
		if again, ok := names.ParseTokenServiceAccount(got.Message()); !ok || again != got {
			t.Errorf("%q: %+v, and its message gives %+v", message, got, again)
		}
	})
}

func TestParseServiceAccountUser(t *testing.T) {
	t.Parallel()
	namespace, name, ok := names.ParseServiceAccountUser(names.ServiceAccountUser("ns", "name"))
	if !ok || namespace != "ns" || name != "name" {
		t.Errorf("got %q %q %v", namespace, name, ok)
	}
	for _, user := range []string{"", "ns:name", "system:serviceaccount:ns", "system:serviceaccount::a", "system:serviceaccount:a:", "system:serviceaccount:a:b:c"} {
		if _, _, ok := names.ParseServiceAccountUser(user); ok {
			t.Errorf("%q is no ServiceAccount's user", user)
		}
	}
}

// TestAddOnWorks has the names that other parties look for.
func TestAddOnWorks(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		names.AddOnDeployWork("a", 12):                 "addon-a-deploy-12",
		names.AddOnPreDeleteWork("a"):                  "addon-a-pre-delete",
		names.AddOnTemplateBinding("a", "ClusterRole"): "open-cluster-management:a:clusterrole:agent",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
