package klusterlet_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/klusterlet"
)

// testAddOnDriver rolls out no agent that would not start, and advises against
// tokens that live shortly.
func (c *cluster) testAddOnDriver(t *testing.T) {
	t.Helper()
	tokens := func(auth string, seconds int64) func(*operatorv1.Klusterlet) {
		return func(k *operatorv1.Klusterlet) {
			k.Spec.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{
				AddOnKubeClientRegistrationDriver: &operatorv1.AddOnRegistrationDriver{AuthType: auth, Token: &operatorv1.TokenConfig{ExpirationSeconds: seconds}},
			}
		}
	}
	c.update(t, tokens("token", 599))
	c.awaitCondition(t, "Applied", klusterlet.ReasonAddOnDriverNotSupported)
	c.awaitCondition(t, klusterlet.ConditionAddOnRegistration, klusterlet.ReasonAddOnDriverNotSupported)
	c.allowAnyAddOnDriver(t)
	c.update(t, tokens("spiffe", 0))
	eventually(t, "the names of the drivers", func() error {
		condition := apimeta.FindStatusCondition(c.klusterlet(t).Status.Conditions, "Applied")
		if condition == nil || !strings.Contains(condition.Message, "spiffe") || !strings.Contains(condition.Message, "csr, token") {
			return fmt.Errorf("condition %+v", condition)
		}
		return nil
	})
	if _, err := c.agent(t); !apierrors.IsNotFound(err) {
		t.Errorf("agent: %v", err)
	}
	c.update(t, tokens("token", 600))
	c.awaitCondition(t, klusterlet.ConditionAddOnRegistration, klusterlet.ReasonShortTokens)
	c.awaitAddOnFlags(t, "--addon-kubeclient-registration-auth=token", "--addon-token-expiration-seconds=600")
	for seconds, flags := range map[int64][]string{0: nil, 86400: {"--addon-token-expiration-seconds=86400"}} {
		c.update(t, tokens("token", seconds))
		c.awaitCondition(t, klusterlet.ConditionAddOnRegistration, klusterlet.ReasonAddOnRegistration)
		c.awaitAddOnFlags(t, append([]string{"--addon-kubeclient-registration-auth=token"}, flags...)...)
	}
	c.update(t, tokens("csr", 1)) // Tokens' life is nothing to a certificate.
	c.awaitCondition(t, "Applied", operatorv1.ReasonKlusterletApplied)
	c.awaitAddOnFlags(t, "--addon-kubeclient-registration-auth=csr")
	// An agent that runs goes on as it is when it would not start again.
	c.update(t, tokens("token", 599))
	c.awaitCondition(t, "Applied", klusterlet.ReasonAddOnDriverNotSupported)
	c.awaitAddOnFlags(t, "--addon-kubeclient-registration-auth=csr")
	c.update(t, func(k *operatorv1.Klusterlet) { k.Spec.RegistrationConfiguration = nil })
	c.awaitCondition(t, "Applied", operatorv1.ReasonKlusterletApplied)
	c.awaitAddOnFlags(t)
}

// awaitAddOnFlags waits until the agent's flags about add-ons are these and no
// others.
func (c *cluster) awaitAddOnFlags(t *testing.T, want ...string) {
	t.Helper()
	eventually(t, "the agent's flags", func() error {
		agent, err := c.agent(t)
		if err != nil {
			return err
		}
		args := agent.Spec.Template.Spec.Containers[0].Args
		got := slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return !strings.HasPrefix(arg, "--addon-") })
		if !slices.Equal(got, want) {
			return fmt.Errorf("want %v about add-ons in %v", want, args)
		}
		return nil
	})
}

// allowAnyAddOnDriver makes the CRD one of a version that knows more drivers.
func (c *cluster) allowAnyAddOnDriver(t *testing.T) {
	t.Helper()
	eventually(t, "another CRD", func() error {
		crd := &unstructured.Unstructured{}
		crd.SetGroupVersionKind(crdKind())
		if err := c.client.Get(t.Context(), client.ObjectKey{Name: "klusterlets.operator.open-cluster-management.io"}, crd); err != nil {
			return err
		}
		versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		version, ok := versions[0].(map[string]any)
		if !ok {
			return errors.New("no version")
		}
		unstructured.RemoveNestedField(version, "schema", "openAPIV3Schema", "properties", "spec", "properties", "registrationConfiguration",
			"properties", "addOnKubeClientRegistrationDriver", "properties", "authType", "enum")
		if err := unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"); err != nil {
			return err
		}
		return c.client.Update(t.Context(), crd)
	})
}
