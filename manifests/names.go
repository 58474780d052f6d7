package manifests

import (
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// named is names by what they are of.
type named = map[string]any

// nameView returns the names that the templates use.
func nameView() named {
	return named{
		"Hub": named{
			"AddOnManager":           names.HubAddOnManagerServiceAccount,
			"Registration":           names.HubRegistrationServiceAccount,
			"AddOnWebhook":           names.HubAddOnWebhookServiceAccount,
			"AddOnWebhookService":    names.AddOnWebhookService,
			"AddOnWebhookPort":       names.AddOnWebhookPort,
			"AddOnWebhookDeployment": names.HubAddOnWebhookDeployment,
			"TokenAuthorizer": named{
				// Name is the name of every object that exists once.
				"Name": names.TokenAuthorizer,
				// Issuer is the ConfigMap of each cluster with its keys.
				"Issuer": names.IssuerConfigMap,
				// ServingCert, Signer and CA are issued by the operator.
				"ServingCert": names.TokenAuthorizerServingCertSecret,
				"Signer":      names.TokenAuthorizerSignerSecret,
				"CA":          names.TokenAuthorizerCAConfigMap,
				// ClientLabel lets proxies reach it.
				"ClientLabel": names.LabelTokenAuthorizerClient,
				"Port":        names.TokenAuthorizerPort,
				"HTTPPort":    names.TokenAuthorizerHTTPPort,
			},
		},
		"Operator": named{
			"Namespace":      names.OperatorNamespace,
			"ClusterManager": names.ClusterManagerOperator,
			"Klusterlet":     names.KlusterletOperator,
			"AddOnNamespace": names.AddOnNamespace,
		},
		"Bootstrap": named{
			"ServiceAccount":        names.BootstrapServiceAccount,
			"ClusterRole":           names.BootstrapClusterRole,
			"ServiceAccountBinding": names.BootstrapServiceAccountBinding,
			"TokenBinding":          names.BootstrapTokenBinding,
			"TokenGroup":            names.BootstrapTokenGroup,
			"TokenID":               names.BootstrapTokenID,
			"TokenSecret":           names.BootstrapTokenSecret,
		},
		"Secrets": named{
			"ImagePull":    names.ImagePullSecret,
			"Bootstrap":    names.BootstrapHubKubeconfigSecret,
			"Signer":       names.SignerSecret,
			"AddOnWebhook": names.AddOnWebhookServingCertSecret,
			"CABundle":     names.CABundleConfigMap,
		},
		"ImagePull": imagePullNames(),
		// DefaultExecutor is as whom ManifestWorks without an executor run.
		"DefaultExecutor": names.DefaultExecutor,
		// Issuer is the ConfigMap that a cluster's agent publishes its issuer in.
		"Issuer": names.IssuerConfigMap,
		// SharedClusterRoles are bound in the namespace of every cluster.
		"SharedClusterRoles": names.SharedClusterRoles(),
	}
}

func imagePullNames() named {
	return named{
		"Namespace":      names.ImagePullNamespace,
		"ServiceAccount": names.ImagePullServiceAccount,
		"Deployment":     names.ImagePullDeployment,
		"Role":           names.ImagePullRole,
		"RegistryRole":   names.ImagePullRegistryRole,
		"LeaderRole":     names.ImagePullLeaderRole,
		"Lease":          names.ImagePullLease,
	}
}

// podView is the input of the shared pod template.
type podView struct {
	Pod

	// App is the value of the app label.
	App string
	// Container is the container's name.
	Container string
	// ServiceAccount is the pods' identity.
	ServiceAccount string
	// Args are the container's arguments.
	Args []string
	// PullSecret names the image pull secret.
	PullSecret string
	// Agent says that the pods are a cluster's agent, with the agent's volumes.
	Agent bool
	// WorkAgent says that the pods are a work agent, with the hub kubeconfig.
	WorkAgent bool
	// WebhookPort is where the pods serve a webhook; 0 means that they do not.
	WebhookPort int
	// Ports are other ports of theirs, and TLSSecret what they serve with,
	// mounted under servingCertPath; empty means none.
	Ports     []portView
	TLSSecret string
}

// portView is a port of a pod.
type portView struct {
	Name string
	Port int
}

// servingCertPath is where pods find what they serve with.
const servingCertPath = "/etc/serving-cert"

// tokenAuthorizerMemory is about twice what the token authorizer takes at its most
// with a thousand clusters and all that it keeps at its bounds (BenchmarkMemory).
const tokenAuthorizerMemory = "512Mi"

// workAgentMemory is more than any measured fleet needs, and what a node can spare:
// this Pod evaluates rules and manifests of others.
const workAgentMemory = "1Gi"

// limited is a pod with a limit of its memory if it has none: most, or what it requests if
// that is more.
func limited(pod Pod, most string) Pod {
	if _, ok := pod.Resources.Limits[corev1.ResourceMemory]; ok {
		return pod
	}
	limit := resource.MustParse(most)
	if request, ok := pod.Resources.Requests[corev1.ResourceMemory]; ok && request.Cmp(limit) > 0 {
		limit = request
	}
	limits := corev1.ResourceList{corev1.ResourceMemory: limit}
	maps.Copy(limits, pod.Resources.Limits)
	pod.Resources.Limits = limits
	return pod
}

// newTokenAuthorizerView is called by the templates.
func newTokenAuthorizerView(values TokenAuthorizer) podView {
	args := append([]string{
		"--addr=$(POD_IP)",
		"--port=" + strconv.Itoa(names.TokenAuthorizerPort),
		"--http-port=" + strconv.Itoa(names.TokenAuthorizerHTTPPort),
		"--from-hub",
		"--tls-cert-file=" + servingCertPath + "/" + names.KeyTLSCert,
		"--tls-key-file=" + servingCertPath + "/" + names.KeyTLSKey,
		"--audit-log=-",
	}, values.Args...)
	if values.TokenService {
		args = append(args, "--sts")
	}
	pod := limited(values.Pod, tokenAuthorizerMemory)
	view := newPodView(pod, names.TokenAuthorizer, names.TokenAuthorizer, names.TokenAuthorizer, roleArgs("extauthz", args))
	view.Ports = []portView{{Name: "grpc", Port: names.TokenAuthorizerPort}, {Name: "http", Port: names.TokenAuthorizerHTTPPort}}
	view.TLSSecret = values.TLSSecret
	if view.TLSSecret == "" {
		view.TLSSecret = names.TokenAuthorizerServingCertSecret
	}
	return view
}

// newPodView is called by the templates.
func newPodView(pod Pod, app, container, serviceAccount string, args []string) podView {
	port := 0
	if serviceAccount == names.HubAddOnWebhookServiceAccount {
		port = names.AddOnWebhookPort
	}
	if app == names.AppWorkAgent {
		pod = limited(pod, workAgentMemory)
	}
	return podView{
		Pod: pod, App: app, Container: container, ServiceAccount: serviceAccount, Args: args,
		PullSecret: names.ImagePullSecret, Agent: app == names.AppRegistrationAgent, WorkAgent: app == names.AppWorkAgent,
		WebhookPort: port,
	}
}
