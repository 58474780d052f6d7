package awsirsa

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	authorizationv1 "k8s.io/api/authorization/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
)

// The credential plugin in the hub kubeconfig, this same program.
const (
	pluginCommand    = "kubectl-ocm"
	pluginAPIVersion = "client.authentication.k8s.io/v1"
	pluginHint       = "This kubeconfig needs kubectl-ocm in the PATH, and an AWS identity that may assume its role."
)

// Reasons that Obtain waits for.
const (
	// ReasonUnaccepted waits for a person, or a policy, on the hub.
	ReasonUnaccepted = "WaitingForAcceptance"
	// ReasonDenied waits for the hub to take a denial back.
	ReasonDenied = "ClusterDenied"
	// ReasonUnannounced waits for the ManagedCluster to name this EKS cluster.
	ReasonUnannounced = "ClusterARNMissing"
)

// EventGranted is the reason of the event that records that the hub lets the agent
// assume its role.
const EventGranted = "HubRoleGranted"

// recheck is how often the ManagedCluster is read where it cannot be watched.
const recheck = 15 * time.Second

// AgentConfig is the configuration of an Agent.
type AgentConfig struct {
	// Identity is the identity of the agent.
	Identity driver.Identity
	// Pair are the EKS clusters of the agent and of the hub.
	Pair identity.Pair
	// Clock is the time that tokens are replaced by.
	Clock clock.PassiveClock
	// Load returns the AWS configuration for a region; nil is the default chain of
	// the SDK.
	Load func(ctx context.Context, region string) (aws.Config, error)
}

// Agent makes the agent known to the hub by an IAM role. It has no state and
// nothing pending: the hub alone decides whether the role can be assumed.
type Agent struct {
	config AgentConfig
}

var _ driver.Agent = (*Agent)(nil)

// NewAgent returns the driver for config.
func NewAgent(config AgentConfig) *Agent { return &Agent{config: config} }

// Decorate implements driver.Agent: it names the EKS cluster, from which the hub
// derives both roles, and OCM's identifier of it.
func (a *Agent) Decorate(cluster *clusterv1.ManagedCluster) {
	metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, identity.AnnotationCluster, a.config.Pair.Managed.String())
	metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, identity.AnnotationSuffix, a.config.Pair.Identifier())
}

// Permissions implements driver.Agent: the ManagedCluster is all that it reads.
func (a *Agent) Permissions() []authorizationv1.ResourceAttributes { return nil }

// User implements driver.Credential: the credential plugin, for other users of the
// kubeconfig. The agent itself signs without it.
func (a *Agent) User() clientcmdapi.AuthInfo {
	return clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
		APIVersion:      pluginAPIVersion,
		Command:         pluginCommand,
		Args:            a.arguments(),
		InstallHint:     pluginHint,
		InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}}
}

func (a *Agent) arguments() []string {
	hub := a.config.Pair.Hub
	return []string{"aws", "get-token", "--cluster-name", hub.Name, "--region", hub.Region, "--role-arn", a.config.Pair.HubRole().String()}
}

// Inspect implements driver.Credential: the stored kubeconfig must run the plugin
// for the role of this cluster.
func (a *Agent) Inspect(stored driver.Data) (credential.Validity, error) {
	arguments, err := storedArguments(stored)
	if err != nil {
		return credential.Validity{}, err
	}
	if !slices.Equal(arguments, a.arguments()) {
		return credential.Validity{}, fmt.Errorf("%w: the hub kubeconfig runs %s", credential.ErrWrongIdentity, strings.Join(arguments, " "))
	}
	return credential.Unlimited(), nil
}

// storedArguments are the arguments of our plugin in a hub kubeconfig Secret.
func storedArguments(stored driver.Data) ([]string, error) {
	if len(stored[names.KeyKubeconfig]) == 0 {
		return nil, fmt.Errorf("no %s: %w", names.KeyKubeconfig, credential.ErrMissing)
	}
	hub, err := kubeconfig.ParseHub(stored[names.KeyKubeconfig])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", credential.ErrMalformed, err)
	}
	if hub.User.Exec == nil {
		return nil, fmt.Errorf("%w: the hub kubeconfig holds a credential of another registration driver", credential.ErrWrongIdentity)
	}
	if hub.User.Exec.Command != pluginCommand {
		return nil, fmt.Errorf("%w: the hub kubeconfig runs another credential plugin", credential.ErrWrongIdentity)
	}
	return hub.User.Exec.Args, nil
}

// Fingerprint implements driver.Agent: the role distinguishes credentials.
func (a *Agent) Fingerprint(stored driver.Data) string {
	arguments, err := storedArguments(stored)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join(arguments, "\x00")))
	return hex.EncodeToString(sum[:])
}

// Renewal implements driver.Credential; a credential without an end is not renewed.
func (a *Agent) Renewal() credential.RenewalPolicy { return credential.Tokens() }

// Report implements driver.Credential: no condition is about a credential that
// does not change.
func (a *Agent) Report() driver.Report { return driver.Report{Event: EventGranted} }

// Obtain implements driver.Credential. The hub lets the agent assume its role once
// it accepted the cluster: only an acceptance that is True counts, the condition
// of a denied cluster exists as well.
func (a *Agent) Obtain(ctx context.Context, hub client.Client, _ driver.Data) (driver.Step, error) {
	cluster := &clusterv1.ManagedCluster{}
	if err := hub.Get(ctx, client.ObjectKey{Name: a.config.Identity.Cluster}, cluster); err != nil {
		return driver.Step{}, fmt.Errorf("get ManagedCluster %s: %w", a.config.Identity.Cluster, err)
	}
	step := driver.Step{Watch: cluster, After: recheck}
	accepted := apimeta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted)
	switch {
	case !a.announced(cluster):
		step.Failing = true
		step.Waiting = driver.Waiting{Reason: ReasonUnannounced, Message: fmt.Sprintf(
			"%[1]s is not registered on the hub as the EKS cluster %[2]s; to change that, run on the hub: kubectl ocm accept --clusters %[1]s --registration-auth awsirsa --managed-cluster-arn %[2]s",
			cluster.Name, a.config.Pair.Managed)}
	case accepted != nil && accepted.Status == metav1.ConditionTrue && cluster.Spec.HubAcceptsClient:
		return driver.Step{Issued: &driver.Issued{Validity: credential.Unlimited()}}, nil
	case accepted != nil && !cluster.Spec.HubAcceptsClient:
		step.Failing = true
		step.Waiting = driver.Waiting{Reason: ReasonDenied, Message: fmt.Sprintf(
			"the hub denies %[1]s; to accept it again, run on the hub: kubectl ocm accept --clusters %[1]s", cluster.Name)}
	default:
		step.Waiting = driver.Waiting{Reason: ReasonUnaccepted, Message: fmt.Sprintf(
			"waiting for a hub administrator to accept %[1]s (EKS cluster %[2]s); run on the hub: kubectl ocm accept --clusters %[1]s", cluster.Name, a.config.Pair.Managed)}
	}
	return step, nil
}

// announced reports whether the hub derives the roles from this EKS cluster, whichever
// spelling of the annotation names it. The suffix may be missing, as for the hub.
func (a *Agent) announced(cluster *clusterv1.ManagedCluster) bool {
	arn, _, err := AnnouncedARN(cluster)
	suffix, suffixed := cluster.Annotations[identity.AnnotationSuffix]
	return err == nil && arn == a.config.Pair.Managed.String() && (!suffixed || suffix == a.config.Pair.Identifier())
}
