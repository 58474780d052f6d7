package upstream

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// WorkAgent is the Deployment that applies the hub's ManifestWorks.
const WorkAgent = names.KlusterletName + "-work-agent"

// Klusterlet plants the agent that "clusteradm join" makes for a cluster, after
// its operator has reconciled.
func Klusterlet(tb testing.TB, admin client.Client, cluster string) {
	tb.Helper()
	klusterlet := &operatorv1.Klusterlet{
		ObjectMeta: metav1.ObjectMeta{Name: names.KlusterletName, Finalizers: []string{names.FinalizerKlusterlet}},
		Spec: operatorv1.KlusterletSpec{
			RegistrationImagePullSpec: Image("registration"), WorkImagePullSpec: Image("work"), ImagePullSpec: OperatorImage,
			ClusterName: cluster, Namespace: names.AgentNamespace,
			DeployOption: operatorv1.KlusterletDeployOption{Mode: operatorv1.InstallModeDefault},
		},
	}
	operatorCRD, err := manifests.RenderKlusterletOperator(manifests.KlusterletOperator{Version: "0.0.0", Operator: manifests.Pod{Image: "none", Replicas: 1}, Spec: klusterlet.Spec})
	crds(tb, admin, operatorCRD, err)
	agentCRDs, err := manifests.RenderKlusterletCRDs(manifests.Klusterlet{Name: names.KlusterletName, Version: "0.0.0"})
	crds(tb, admin, agentCRDs, err)
	created := map[string]string{names.LabelCreatedByKlusterlet: names.KlusterletName}
	agents := map[string]string{names.LabelCreatedByKlusterlet: names.KlusterletName, names.LabelKlusterlet: names.KlusterletName}
	objs := []client.Object{
		namespace(names.OperatorNamespace, nil), namespace(names.AgentNamespace, agents), namespace(names.AddOnNamespace, created),
	}
	objs = append(objs, operator(names.KlusterletOperator, names.KlusterletOperator, "klusterlet", nil)...)
	registration, work := names.RegistrationAgentServiceAccount(names.KlusterletName), names.WorkAgentServiceAccount(names.KlusterletName)
	objs = append(objs, account(meta(names.AgentNamespace, registration, created), "open-cluster-management:klusterlet-registration:agent")...)
	objs = append(objs, account(meta(names.AgentNamespace, work, created), "open-cluster-management:klusterlet-work:agent")...)
	plant(tb, admin, append(objs, klusterlet,
		&corev1.Secret{
			ObjectMeta: meta(names.AgentNamespace, names.BootstrapHubKubeconfigSecret, nil),
			Data:       map[string][]byte{names.KeyKubeconfig: []byte("{}")},
		},
		deployment(meta(names.AgentNamespace, names.RegistrationAgentDeployment(names.KlusterletName), created),
			names.AppRegistrationAgent, "registration-controller", Image("registration"), registration,
			"/registration", "agent", "--spoke-cluster-name="+cluster, "--bootstrap-kubeconfig=/spoke/bootstrap/kubeconfig"),
		deployment(meta(names.AgentNamespace, WorkAgent, created),
			"klusterlet-manifestwork-agent", "klusterlet-manifestwork-agent", Image("work"), work,
			"/work", "agent", "--spoke-cluster-name="+cluster),
	))
}
