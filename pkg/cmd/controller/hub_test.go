//go:build linux

package controller_test

import (
	"io"
	"strings"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/controller"
)

// TestFlagsAreCheckedFirst: a wrong value is named, with the right ones, before
// anything is connected to.
func TestFlagsAreCheckedFirst(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args []string
		want []string
	}{
		{[]string{"hub", "--enabled-registration-drivers=oidc"}, []string{`"oidc"`, "csr, awsirsa"}},
		{[]string{"hub", "--enabled-registration-drivers=csr,grpc"}, []string{"grpc", "not available in this version"}},
		{[]string{"hub", "--enabled-registration-drivers=csr,aws-irsa"}, []string{"--hub-cluster-arn: the registration driver awsirsa needs it"}},
		{
			[]string{
				"hub", "--enabled-registration-drivers=awsirsa", "--hub-cluster-arn=hub", "--auto-approved-arn-patterns=(",
				"--aws-resource-tags=a=b=c", "--aws-identity-mapping=x",
			},
			[]string{"is not the ARN of an EKS cluster", "no regular expression", "--aws-resource-tags", "auto, access-entry, aws-auth"},
		},
		{[]string{"hub", "--enabled-registration-drivers="}, []string{"name at least one"}},
		{[]string{"hub", "--feature-gates=Magic=true"}, []string{`"Magic"`, "ManagedClusterAutoApproval", "ResourceCleanup"}},
		{[]string{"hub", "--feature-gates=ResourceCleanup"}, []string{"Name=true"}},
		{[]string{"hub", "--feature-gates=ClusterProfile=true"}, []string{`"ClusterProfile"`, "not available in this version"}},
		{[]string{"hub", "--gc-resource-list=works"}, []string{"group/version/resource"}},
		{[]string{"hub", "--labels=a b"}, []string{"--labels"}},
		{[]string{"hub", "--labels=open-cluster-management.io/cluster-name=c1"}, []string{"set by the hub itself"}},
		{[]string{"webhook"}, []string{"--namespace"}},
		{[]string{"extauthz"}, []string{"--clusters-config", "--from-hub"}},
		{[]string{"authz", "--from-hub", "--clusters-config=x"}, []string{"leave out --clusters-config"}},
		{[]string{"extauthz", "--workload-kubeconfig=x", "--strict"}, []string{"--strict"}},
		{[]string{"extauthz", "--from-hub", "--token-expiration=599"}, []string{"599", "600"}},
		{[]string{"extauthz", "--from-hub", "--log-level=trace"}, []string{"trace", "debug, info, warn, error"}},
		{[]string{"extauthz", "--from-hub", "--log-format=xml"}, []string{"xml", "json, text"}},
		{[]string{"extauthz", "--from-hub", "--port=0"}, []string{"--http-port", "--unix-socket"}},
		{[]string{"extauthz", "--from-hub", "--sts"}, []string{"--http-port"}},
		{[]string{"extauthz", "--from-hub", "--drain=16s"}, []string{"15s"}},
		{[]string{"extauthz", "--from-hub", "--tls-cert-file=x"}, []string{"--tls-key-file"}},
		{[]string{"extauthz", "--from-hub", "--client-ca-file=x"}, []string{"--tls-cert-file"}},
		{[]string{"extauthz", "--from-hub", "--tls-cert-file=x", "--tls-key-file=y", "--client-san=z"}, []string{"--client-ca-file"}},
		{[]string{"extauthz", "--clusters-config=x"}, []string{"hub's kubeconfig", "/nonexistent"}},
		{[]string{"imagepull", "--audience=a"}, []string{"--registry", "--registry-configmap"}},
		{[]string{"imagepull", "--registry=r"}, []string{"--audience is missing", `--audience ""`}},
		{[]string{"imagepull", "--registry=https://r", "--audience=a"}, []string{`"https://r" is not a registry host`}},
		{[]string{"imagepull", "--registry-configmap=r", "--audience=a"}, []string{"NAMESPACE/NAME"}},
		{[]string{"imagepull", "--registry=r", "--audience=a", "--token-ttl=5m"}, []string{"5m0s", "10m0s"}},
		{[]string{"imagepull", "--registry=r", "--audience=a", "--namespace-selector=a b"}, []string{"--namespace-selector"}},
		{[]string{"imagepull", "--registry=r", "--audience=a", "--service-account-selector=a b"}, []string{"--service-account-selector"}},
		{[]string{"imagepull", "--registry=r", "--audience=a", "--attach=secrets"}, []string{"imagePullSecrets, none"}},
		{[]string{"imagepull", "--registry=r", "--audience="}, []string{"/nonexistent"}},
		{[]string{"cleanup", "--denied-for=-1h"}, []string{"--denied-for"}},
	} {
		cmd := controller.New()
		cmd.SetArgs(append(tc.args, "--kubeconfig=/nonexistent"))
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		err := cmd.ExecuteContext(t.Context())
		if err == nil {
			t.Errorf("%v: no error", tc.args)
			continue
		}
		for _, want := range tc.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %q does not say %q", tc.args, err, want)
			}
		}
	}
}
