package clustermanager_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/controller"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/clustermanager"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/hubspec"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/setup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/blindfold"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

const (
	hubARN      = "arn:aws-us-gov:eks:us-gov-west-1:123456789012:cluster/hub"
	creatorRole = "arn:aws-us-gov:iam::123456789012:role/hub_managed-cluster-identity-creator"
)

// withAWS is a hub with the driver awsirsa next to others.
func withAWS(aws operatorv1.AwsIrsaConfig, others ...string) operatorv1.ClusterManagerSpec {
	c := withDrivers(others...)
	c.RegistrationDrivers = append(c.RegistrationDrivers, operatorv1.RegistrationDriverHub{AuthType: "awsirsa", AwsIrsa: &aws})
	return operatorv1.ClusterManagerSpec{RegistrationConfiguration: c}
}

// installAWS does what init does for an EKS hub.
func (h *hub) installAWS(t *testing.T, spec operatorv1.ClusterManagerSpec) {
	t.Helper()
	rendered, err := manifests.RenderHubOperator(manifests.HubOperator{
		Version: "1.0.0", Spec: spec, Operator: manifests.Pod{Image: "operator:v1"},
		System: setup.Setup{}.HubRuntime(driver.HubSettings{}).System,
	})
	if err != nil {
		t.Fatal(err)
	}
	installation.Apply(t, h.admin, "ocm.init", rendered)
}

// awsState is what the operator renders about AWS.
type awsState struct {
	// Args are the controller's, behind its address.
	Args []string
	// Account and Pods are the role in the annotations of the ServiceAccount and of
	// the pods.
	Account, Pods string
	// AWSAuth says that the controller may edit the ConfigMap aws-auth, and has no other
	// permission in kube-system.
	AWSAuth bool
}

func (h *hub) awsState(ctx context.Context) (awsState, error) {
	var (
		state      awsState
		deployment appsv1.Deployment
		account    corev1.ServiceAccount
		binding    rbacv1.RoleBinding
		role       rbacv1.Role
	)
	if err := h.admin.Get(ctx, deploymentKey(), &deployment); err != nil {
		return state, err
	}
	if err := h.admin.Get(ctx, client.ObjectKey{Namespace: names.HubNamespace, Name: names.HubRegistrationServiceAccount}, &account); err != nil {
		return state, err
	}
	rights := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: registrationRole}
	errBinding, errRole := h.admin.Get(ctx, rights, &binding), h.admin.Get(ctx, rights, &role)
	if apierrors.IsNotFound(errBinding) != apierrors.IsNotFound(errRole) {
		return state, fmt.Errorf("role: %w, binding: %w", errRole, errBinding)
	}
	template := deployment.Spec.Template
	state.Args = template.Spec.Containers[0].Args[3:]
	state.Account, state.Pods = account.Annotations[identity.AnnotationRole], template.Annotations[identity.AnnotationRole]
	state.AWSAuth = errRole == nil && errBinding == nil && len(role.Rules) == 1
	return state, nil
}

func (h *hub) expectAWS(t *testing.T, want awsState) {
	t.Helper()
	eventually(t, func(ctx context.Context) string {
		got, err := h.awsState(ctx)
		if err != nil {
			return err.Error()
		}
		return gocmp.Diff(want, got)
	})
}

// expectParsed has the real controller read its flags: it gets as far as its
// kubeconfig.
func expectParsed(t *testing.T, args []string) {
	t.Helper()
	cmd := controller.New()
	cmd.SetArgs(append([]string{"hub", "--kubeconfig=/nonexistent"}, args...))
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "/nonexistent") {
		t.Errorf("%v: %v", args, err)
	}
}

// TestAWS switches the driver awsirsa on, changes all of its settings, and switches
// it off again, on a hub whose operator has the rights that init gives it.
func TestAWS(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.run(t, nil)
	h.expectCondition(t, "Applied", metav1.ConditionTrue, operatorv1.ReasonClusterManagerApplied)
	// An operator whose rights are of a hub without AWS cannot grant what the
	// controller needs.
	h.install(t, withAWS(operatorv1.AwsIrsaConfig{HubClusterArn: hubARN}))
	h.expectCondition(t, "Applied", metav1.ConditionFalse, clustermanager.ReasonHubResourceApplyFailed)
	h.installAWS(t, withAWS(operatorv1.AwsIrsaConfig{
		HubClusterArn:          hubARN,
		AutoApprovedIdentities: []string{`arn:aws-us-gov:eks:us-gov-west-1:\d{12,12}:cluster/"a"`, "x"},
		Tags:                   []string{"team=fleet", "cost-center=a b"},
	}, "csr"))
	first := awsState{
		Args: []string{
			"--enabled-registration-drivers=csr,awsirsa", "--hub-cluster-arn=" + hubARN,
			`--auto-approved-arn-patterns="arn:aws-us-gov:eks:us-gov-west-1:\d{12,12}:cluster/""a""",x`, "--aws-resource-tags=team=fleet,cost-center=a b",
		},
		Account: creatorRole, Pods: creatorRole, AWSAuth: true,
	}
	h.expectAWS(t, first)
	expectParsed(t, first.Args)
	h.expectCondition(t, "Applied", metav1.ConditionTrue, operatorv1.ReasonClusterManagerApplied)

	const other = "arn:aws-us-gov:iam::123456789012:role/team/creator"
	h.installAWS(t, withAWS(operatorv1.AwsIrsaConfig{HubClusterArn: hubARN}))
	h.annotate(t, `{"`+hubspec.AnnotationMapping+`":"access-entry","`+hubspec.AnnotationCreator+`":"`+other+`","`+
		hubspec.AnnotationPodIdentity+`":"true"}`)
	second := awsState{
		Args: []string{
			"--enabled-registration-drivers=awsirsa", "--hub-cluster-arn=" + hubARN, "--aws-identity-mapping=access-entry", "--aws-pod-identity=true",
		},
		Account: other, Pods: other,
	}
	h.expectAWS(t, second)
	expectParsed(t, second.Args)

	h.install(t, operatorv1.ClusterManagerSpec{RegistrationConfiguration: withDrivers("csr")})
	h.expectAWS(t, awsState{Args: []string{"--enabled-registration-drivers=csr"}})
	h.expectCondition(t, "Applied", metav1.ConditionTrue, operatorv1.ReasonClusterManagerApplied)
}

// TestRefusedAWSSetting: with settings that cannot work, the running controller
// keeps its flags, its role and its rights, and a condition names the setting.
func TestRefusedAWSSetting(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	good := operatorv1.AwsIrsaConfig{HubClusterArn: hubARN}
	h.installAWS(t, withAWS(good))
	h.run(t, nil)
	running := awsState{
		Args:    []string{"--enabled-registration-drivers=awsirsa", "--hub-cluster-arn=" + hubARN},
		Account: creatorRole, Pods: creatorRole, AWSAuth: true,
	}
	h.expectAWS(t, running)
	// A Role of another user with the label gives the controller nothing.
	if err := h.admin.Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "labelled", Labels: map[string]string{names.LabelCreatedByClusterManager: names.ClusterManagerName}},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"list"}}},
	}); err != nil {
		t.Fatal(err)
	}
	const nothing = `{"` + hubspec.AnnotationCreator + `":null,"` + hubspec.AnnotationMapping + `":null,"` + hubspec.AnnotationPodIdentity + `":null}`
	const aws = "spec.registrationConfiguration.registrationDrivers[awsirsa].awsirsa."
	for _, tc := range []struct {
		name        string
		config      operatorv1.AwsIrsaConfig
		annotations string
		want        []string
	}{
		{name: "no ARN", config: operatorv1.AwsIrsaConfig{Tags: []string{"a=b"}}, want: []string{aws + "hubClusterArn: the registration driver awsirsa needs it"}},
		{
			name: "a region of another partition", config: operatorv1.AwsIrsaConfig{HubClusterArn: "arn:aws:eks:us-gov-west-1:123456789012:cluster/hub"},
			want: []string{aws + "hubClusterArn: ", "no region of the partition aws"},
		},
		{
			name:   "patterns and tags",
			config: operatorv1.AwsIrsaConfig{HubClusterArn: hubARN, AutoApprovedIdentities: []string{"("}, Tags: []string{"a=b=c"}},
			want:   []string{aws + `autoApprovedIdentities: "(" is no regular expression`, aws + `tags: invalid tag "a=b=c": must be key=value`},
		},
		{
			name: "a role of another account", config: good,
			annotations: `{"` + hubspec.AnnotationCreator + `":"arn:aws-us-gov:iam::210987654321:role/x"}`,
			want:        []string{hubspec.AnnotationCreator + ": the role", "is not of account 123456789012"},
		},
		{
			name: "a long name", config: operatorv1.AwsIrsaConfig{HubClusterArn: hubARN + strings.Repeat("b", 29)},
			want: []string{hubspec.AnnotationCreator + ": the role name", "65 characters"},
		},
		{
			name: "annotations", config: good,
			annotations: `{"` + hubspec.AnnotationMapping + `":"both","` + hubspec.AnnotationPodIdentity + `":"yes"}`,
			want:        []string{hubspec.AnnotationMapping + `: "both" must be one of`, hubspec.AnnotationPodIdentity + `: "yes" is neither true nor false`},
		},
	} {
		h.annotate(t, nothing)
		h.annotate(t, cmp.Or(tc.annotations, nothing))
		h.installAWS(t, withAWS(tc.config))
		eventually(t, func(context.Context) string {
			c := apimeta.FindStatusCondition(h.clusterManager(t).Status.Conditions, "Applied")
			for _, want := range append(tc.want, "keeps its last settings until then") {
				if c == nil || c.Reason != clustermanager.ReasonSettingInvalid || !strings.Contains(c.Message, want) {
					return tc.name + ": no " + want
				}
			}
			return ""
		})
		h.expectAWS(t, running)
	}
	h.annotate(t, nothing)
	h.expectCondition(t, "Applied", metav1.ConditionTrue, operatorv1.ReasonClusterManagerApplied)
}

// TestDriverInUse: neither the driver nor the hub's EKS cluster is taken from a
// controller as long as clusters have roles by them.
func TestDriverInUse(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.installAWS(t, withAWS(operatorv1.AwsIrsaConfig{HubClusterArn: hubARN}, "csr"))
	h.run(t, nil)
	running := awsState{
		Args:    []string{"--enabled-registration-drivers=csr,awsirsa", "--hub-cluster-arn=" + hubARN},
		Account: creatorRole, Pods: creatorRole, AWSAuth: true,
	}
	h.expectAWS(t, running)
	record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: names.HubNamespace, Name: "registration-grant-awsirsa-x",
		Labels: map[string]string{names.LabelGrant: "awsirsa", names.LabelClusterName: "c1"},
	}}
	if err := h.admin.Create(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	moved := strings.Replace(hubARN, "cluster/hub", "cluster/other", 1)
	for _, spec := range []operatorv1.ClusterManagerSpec{
		withAWS(operatorv1.AwsIrsaConfig{HubClusterArn: moved}, "csr"),
		{RegistrationConfiguration: withDrivers("csr")},
	} {
		h.installAWS(t, spec)
		h.expectCondition(t, "Applied", metav1.ConditionFalse, clustermanager.ReasonDriverInUse)
		message := apimeta.FindStatusCondition(h.clusterManager(t).Status.Conditions, "Applied").Message
		if !strings.Contains(message, hubARN+": c1. ") {
			t.Error(message)
		}
		h.expectAWS(t, running)
	}
	// What is not about the driver is applied meanwhile, also a setting of it.
	h.installAWS(t, withAWS(operatorv1.AwsIrsaConfig{HubClusterArn: hubARN}))
	h.expectCondition(t, "Applied", metav1.ConditionTrue, operatorv1.ReasonClusterManagerApplied)
	h.installAWS(t, operatorv1.ClusterManagerSpec{RegistrationConfiguration: withDrivers("csr")})
	h.expectCondition(t, "Applied", metav1.ConditionFalse, clustermanager.ReasonDriverInUse)
	if err := h.admin.Delete(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	h.expectCondition(t, "Applied", metav1.ConditionTrue, operatorv1.ReasonClusterManagerApplied)
	h.expectAWS(t, awsState{Args: []string{"--enabled-registration-drivers=csr"}})
}

// TestDriverInUseUnseen: so it is when the operator's cache does not show yet what
// the operator has made.
func TestDriverInUseUnseen(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.installAWS(t, withAWS(operatorv1.AwsIrsaConfig{HubClusterArn: hubARN}))
	connection := h.ConfigForAccount(t, names.OperatorNamespace, names.ClusterManagerOperator)
	connection.Wrap(blindfold.New(func(watch *http.Request) bool { return strings.HasSuffix(watch.URL.Path, "/deployments") }).Wrap)
	h.start(t, &operator{}, connection, nil)
	running := awsState{
		Args:    []string{"--enabled-registration-drivers=awsirsa", "--hub-cluster-arn=" + hubARN},
		Account: creatorRole, Pods: creatorRole, AWSAuth: true,
	}
	h.expectAWS(t, running)
	if err := h.admin.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: names.HubNamespace, Name: "registration-grant-awsirsa-x",
		Labels: map[string]string{names.LabelGrant: "awsirsa", names.LabelClusterName: "c1"},
	}}); err != nil {
		t.Fatal(err)
	}
	h.installAWS(t, withAWS(operatorv1.AwsIrsaConfig{HubClusterArn: strings.Replace(hubARN, "cluster/hub", "cluster/other", 1)}))
	h.expectCondition(t, "Applied", metav1.ConditionFalse, clustermanager.ReasonDriverInUse)
	h.expectAWS(t, running)
}
