package klusterlet_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/operand"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/klusterlet"
)

// operatorConditions are those that the operator writes in every operand.
func operatorConditions() []string {
	return []string{
		"AddOnRegistrationConfigured", "Applied", "Available", "RegistrationDesiredDegraded", "ValidFeatureGates", "WorkDesiredDegraded",
	}
}

// expectConditions waits until every condition of the operator's is there and
// about the current generation.
func (c *cluster) expectConditions(t *testing.T) {
	t.Helper()
	eventually(t, "every condition is current", func() error {
		k := c.klusterlet(t)
		var current []string
		for _, condition := range k.Status.Conditions {
			if condition.ObservedGeneration == k.Generation {
				current = append(current, condition.Type)
			}
		}
		slices.Sort(current)
		if diff := cmp.Diff(operatorConditions(), current); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
}

// agentRuns waits until the agent has an image, and some of its flags.
func (c *cluster) agentRuns(t *testing.T, image string, flags ...string) {
	t.Helper()
	eventually(t, "the agent runs "+image, func() error {
		d, err := c.agent(t)
		if err != nil {
			return err
		}
		container := d.Spec.Template.Spec.Containers[0]
		for _, flag := range flags {
			if !slices.Contains(container.Args, flag) {
				return fmt.Errorf("no %s in %v", flag, container.Args)
			}
		}
		if container.Image != image {
			return fmt.Errorf("image %s", container.Image)
		}
		return nil
	})
}

// TestGatesWithoutEffectStopNothing enables what this version does not
// implement, of both agents and of upstream's operator.
func TestGatesWithoutEffectStopNothing(t *testing.T) {
	t.Parallel()
	c := start(t, nil)
	c.awaitCondition(t, "Applied", operatorv1.ReasonKlusterletApplied)
	on := func(name string) operatorv1.FeatureGate {
		return operatorv1.FeatureGate{Feature: name, Mode: operatorv1.FeatureGateModeTypeEnable}
	}
	login := client.RawPatch(types.MergePatchType, []byte(`{"data":{".dockerconfigjson":"eyJhdXRocyI6e319"}}`))
	source := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: names.OperatorNamespace, Name: names.ImagePullSecret}}
	if err := c.client.Patch(t.Context(), source, login); err != nil {
		t.Fatal(err)
	}
	c.update(t, func(k *operatorv1.Klusterlet) {
		k.Spec.RegistrationImagePullSpec = "ours:v2"
		k.Spec.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{FeatureGates: []operatorv1.FeatureGate{
			on("ClusterProperty"), on("NetworkPolicies"), {Feature: "ClusterClaim", Mode: operatorv1.FeatureGateModeTypeDisable},
		}}
		k.Spec.WorkConfiguration = &operatorv1.WorkAgentConfiguration{FeatureGates: []operatorv1.FeatureGate{on("ExecutorValidatingCaches")}}
	})
	c.awaitCondition(t, "ValidFeatureGates", "FeatureGatesWithoutEffect")
	message := apimeta.FindStatusCondition(c.klusterlet(t).Status.Conditions, "ValidFeatureGates").Message
	if !strings.HasSuffix(message, ": ClusterProperty, NetworkPolicies") {
		t.Errorf("message %q", message)
	}
	c.awaitCondition(t, "Applied", operatorv1.ReasonKlusterletApplied)
	c.expectConditions(t)
	c.agentRuns(t, "ours:v2", "--feature-gates=ClusterClaim=false")
	eventually(t, "the work agent has its gate", func() error {
		d, err := c.workAgent(t)
		if args := d.Spec.Template.Spec.Containers; err == nil && !slices.Contains(args[0].Args, "--feature-gates=ExecutorValidatingCaches=true") {
			err = fmt.Errorf("args %q", args[0].Args)
		}
		return err
	})
	d, err := c.agent(t)
	if err != nil {
		t.Fatal(err)
	}
	if args := strings.Join(d.Spec.Template.Spec.Containers[0].Args, " "); strings.Count(args, "--feature-gates") != 1 {
		t.Errorf("args %s", args)
	}
	eventually(t, "the pull secret is copied", func() error {
		copied := &corev1.Secret{}
		if err := c.client.Get(t.Context(), client.ObjectKey{Namespace: names.AgentNamespace, Name: names.ImagePullSecret}, copied); err != nil {
			return err
		}
		if got := string(copied.Data[corev1.DockerConfigJsonKey]); got != `{"auths":{}}` {
			return fmt.Errorf("it is %s", got)
		}
		return nil
	})
}

// TestRefusedSettingKeepsTheRunningAgent sets what the agent would not start
// with, one after the other, each with a new image.
func TestRefusedSettingKeepsTheRunningAgent(t *testing.T) {
	t.Parallel()
	c := start(t, nil)
	registration := func(k *operatorv1.Klusterlet) *operatorv1.RegistrationConfiguration {
		k.Spec.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{}
		return k.Spec.RegistrationConfiguration
	}
	lifetime := func(seconds int32) func(*operatorv1.Klusterlet) {
		return func(k *operatorv1.Klusterlet) { registration(k).ClientCertExpirationSeconds = seconds }
	}
	const good = "--client-cert-expiration-seconds=7200"
	c.update(t, lifetime(7200))
	c.agentRuns(t, "ours:v1", good)
	for i, tc := range []struct {
		reason, message string
		change          func(*operatorv1.Klusterlet)
	}{
		{klusterlet.ReasonSettingInvalid, "clientCertExpirationSeconds is 1: use at least 3600", lifetime(1)},
		{klusterlet.ReasonSettingInvalid, "clientCertExpirationSeconds is 3599: use at least 3600", lifetime(3599)},
		{klusterlet.ReasonSettingInvalid, `"http://a:6443" is not an https URL`, func(k *operatorv1.Klusterlet) {
			k.Spec.ExternalServerURLs = []operatorv1.ServerURL{{URL: "http://a:6443"}}
		}},
		{klusterlet.ReasonSettingInvalid, "maxCustomClusterClaims is -1", func(k *operatorv1.Klusterlet) {
			registration(k).ClusterClaimConfiguration = &operatorv1.ClusterClaimConfiguration{MaxCustomClusterClaims: -1}
		}},
		{klusterlet.ReasonDriverNotSupported, "grpc is not available", func(k *operatorv1.Klusterlet) {
			registration(k).RegistrationDriver.AuthType = "grpc"
		}},
		{klusterlet.ReasonSettingInvalid, "awsIrsa is missing: set hubClusterArn and managedClusterArn", func(k *operatorv1.Klusterlet) {
			registration(k).RegistrationDriver.AuthType = "awsirsa"
		}},
		{klusterlet.ReasonSettingInvalid, "roles cannot be assumed across partitions", func(k *operatorv1.Klusterlet) {
			registration(k).RegistrationDriver = operatorv1.RegistrationDriver{AuthType: "awsirsa", AwsIrsa: &operatorv1.AwsIrsa{
				HubClusterArn:     "arn:aws-cn:eks:cn-north-1:111111111111:cluster/hub",
				ManagedClusterArn: "arn:aws:eks:us-west-2:222222222222:cluster/managed_1",
			}}
		}},
		{klusterlet.ReasonAddOnDriverNotSupported, "use at least 600", func(k *operatorv1.Klusterlet) {
			registration(k).AddOnKubeClientRegistrationDriver = &operatorv1.AddOnRegistrationDriver{
				AuthType: "token", Token: &operatorv1.TokenConfig{ExpirationSeconds: 599},
			}
		}},
	} {
		image := fmt.Sprintf("ours:test%d", i)
		c.update(t, func(k *operatorv1.Klusterlet) {
			k.Spec.RegistrationImagePullSpec = image
			k.Spec.ExternalServerURLs = nil
			tc.change(k)
		})
		c.awaitCondition(t, "Applied", tc.reason)
		message := apimeta.FindStatusCondition(c.klusterlet(t).Status.Conditions, "Applied").Message
		if !strings.Contains(message, tc.message) || !strings.Contains(message, "keeps its last settings") {
			t.Errorf("message %q", message)
		}
		c.agentRuns(t, image, good)
		c.expectConditions(t)
	}
	for _, seconds := range []int32{3600, 0} {
		c.update(t, lifetime(seconds))
		c.awaitCondition(t, "Applied", operatorv1.ReasonKlusterletApplied)
	}
	c.update(t, func(k *operatorv1.Klusterlet) { k.Spec.DeployOption.Mode = operatorv1.InstallModeHosted })
	c.awaitCondition(t, "Applied", operand.ReasonModeNotSupported)
	c.expectConditions(t)
}

// TestAWS: the agent of a cluster on EKS gets the ARNs of both clusters, and its
// ServiceAccount the role that was made for it, until it registers otherwise.
func TestAWS(t *testing.T) {
	t.Parallel()
	c := start(t, nil)
	flags := []string{
		"--registration-auth=awsirsa",
		"--hub-cluster-arn=arn:aws-us-gov:eks:us-gov-west-1:111111111111:cluster/hub",
		"--managed-cluster-arn=arn:aws-us-gov:eks:us-gov-east-1:222222222222:cluster/managed_1",
		// The MD5 sum of 111111111111#hub#222222222222#managed_1.
		"--managed-cluster-role-suffix=5d962c8a6d76ff1f7e885b05573d9631",
	}
	c.update(t, func(k *operatorv1.Klusterlet) {
		k.Spec.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{RegistrationDriver: operatorv1.RegistrationDriver{
			AuthType: "awsirsa", AwsIrsa: &operatorv1.AwsIrsa{
				HubClusterArn:     "arn:aws-us-gov:eks:us-gov-west-1:111111111111:cluster/hub",
				ManagedClusterArn: "arn:aws-us-gov:eks:us-gov-east-1:222222222222:cluster/managed_1",
			},
		}}
	})
	for _, flag := range flags {
		c.agentRuns(t, "ours:v1", flag)
	}
	role := func() string {
		account := &corev1.ServiceAccount{}
		key := client.ObjectKey{Namespace: names.AgentNamespace, Name: names.RegistrationAgentServiceAccount(names.KlusterletName)}
		if err := c.client.Get(t.Context(), key, account); err != nil {
			t.Fatal(err)
		}
		return account.Annotations["eks.amazonaws.com/role-arn"]
	}
	const want = "arn:aws-us-gov:iam::222222222222:role/ocm-managed-cluster-5d962c8a6d76ff1f7e885b05573d9631"
	eventually(t, "the ServiceAccount has its role", func() error {
		if got := role(); got != want {
			return fmt.Errorf("got %q", got)
		}
		return nil
	})
	// A setting that is refused takes neither the flags from the agent nor the role.
	c.update(t, func(k *operatorv1.Klusterlet) {
		k.Spec.RegistrationImagePullSpec = "ours:v2"
		k.Spec.RegistrationConfiguration.RegistrationDriver.AwsIrsa = nil
	})
	c.awaitCondition(t, "Applied", klusterlet.ReasonSettingInvalid)
	for _, flag := range flags {
		c.agentRuns(t, "ours:v2", flag)
	}
	if got := role(); got != want {
		t.Errorf("with a setting that is refused the role is %q", got)
	}
	c.update(t, func(k *operatorv1.Klusterlet) { k.Spec.RegistrationConfiguration = nil })
	eventually(t, "the ServiceAccount has no role any more", func() error {
		if got := role(); got != "" {
			return fmt.Errorf("got %q", got)
		}
		return nil
	})
}
