package podwebhook

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"path"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws"
)

// RoleAnnotation names the IAM role of a ServiceAccount's Pods.
const RoleAnnotation = "eks.amazonaws.com/role-arn"

const (
	webhookName  = "pod-identity-webhook.amazonaws.com"
	tokenVolume  = "aws-iam-token"
	tokenDir     = "/var/run/secrets/eks.amazonaws.com/serviceaccount"
	tokenFile    = "token"
	tokenSeconds = 86400
	// The emulator's CA.
	caVolume, caConfigMap = "aws-emulator-ca", "aws-emulator-ca"
	caDir, caFile         = "/var/run/aws-emulator", "ca.pem"
)

// Install serves the webhook to a cluster in a region of the emulator, until the
// test ends.
func Install(tb testing.TB, cluster client.Client, cloud *aws.Cloud, region string) {
	tb.Helper()
	handler := &mutator{cluster: cluster, cloud: cloud, region: region, decoder: admission.NewDecoder(scheme.New())}
	server := httptest.NewTLSServer(&admission.Webhook{Handler: handler})
	tb.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	err := cluster.Create(tb.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: webhookName},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name:         webhookName,
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &server.URL, CABundle: ca},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNoneOnDryRun),
			AdmissionReviewVersions: []string{"v1"},
		}},
	})
	if err != nil {
		tb.Fatal(err)
	}
}

// mutator decides about Pods.
type mutator struct {
	cluster client.Client
	cloud   *aws.Cloud
	region  string
	decoder admission.Decoder
}

// Handle implements admission.Handler.
func (m *mutator) Handle(ctx context.Context, request admission.Request) admission.Response {
	pod := &corev1.Pod{}
	if err := m.decoder.Decode(request, pod); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	account := &corev1.ServiceAccount{}
	err := m.cluster.Get(ctx, client.ObjectKey{Namespace: request.Namespace, Name: pod.Spec.ServiceAccountName}, account)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	role := account.Annotations[RoleAnnotation]
	if role == "" {
		return admission.Allowed("the ServiceAccount has no role")
	}
	if err := m.ensureCA(ctx, request.Namespace); err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	m.equip(&pod.Spec, role)
	changed, err := json.Marshal(pod)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(request.Object.Raw, changed)
}

// ensureCA puts the emulator's CA where Pods of a namespace can mount it.
func (m *mutator) ensureCA(ctx context.Context, namespace string) error {
	err := m.cluster.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: caConfigMap},
		Data:       map[string]string{caFile: string(m.cloud.CA())},
	})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// equip gives all containers of a Pod the token of its role.
func (m *mutator) equip(pod *corev1.PodSpec, role string) {
	pod.Volumes = append(pod.Volumes,
		corev1.Volume{Name: tokenVolume, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
				Audience: aws.Audience, ExpirationSeconds: ptr.To[int64](tokenSeconds), Path: tokenFile,
			}}},
		}}},
		corev1.Volume{Name: caVolume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: caConfigMap},
		}}})
	ca := path.Join(caDir, caFile)
	environment := []corev1.EnvVar{
		{Name: "AWS_REGION", Value: m.region},
		{Name: "AWS_DEFAULT_REGION", Value: m.region},
		{Name: "AWS_STS_REGIONAL_ENDPOINTS", Value: "regional"},
		{Name: "AWS_ROLE_ARN", Value: role},
		{Name: "AWS_WEB_IDENTITY_TOKEN_FILE", Value: path.Join(tokenDir, tokenFile)},
		{Name: "HTTPS_PROXY", Value: m.cloud.ProxyURL()},
		{Name: "AWS_CA_BUNDLE", Value: ca},
		{Name: "AWS_EC2_METADATA_DISABLED", Value: "true"},
	}
	for i := range pod.Containers {
		container := &pod.Containers[i]
		container.Env = append(container.Env, environment...)
		container.VolumeMounts = append(container.VolumeMounts,
			corev1.VolumeMount{Name: tokenVolume, MountPath: tokenDir, ReadOnly: true},
			corev1.VolumeMount{Name: caVolume, MountPath: caDir, ReadOnly: true})
	}
}
