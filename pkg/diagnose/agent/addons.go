package agent

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/klusterlet"
)

// addOnDriver checks how the Klusterlet wants add-ons to authenticate.
func (a *agent) addOnDriver(context.Context) finding.Outcome {
	c := apimeta.FindStatusCondition(a.klusterlet.Status.Conditions, klusterlet.ConditionAddOnRegistration)
	switch {
	case c == nil:
		return finding.Good("the operator does not say")
	case c.Status != metav1.ConditionTrue:
		return finding.Bad(a.Command("addon-auth set"), "%s", c.Message)
	case c.Reason == klusterlet.ReasonShortTokens:
		return finding.Caution(a.Command("addon-auth set --expiration-seconds 86400"), "%s", c.Message)
	}
	return finding.Good("%s", c.Message)
}

// addOnSecrets checks the credentials that the agent stores for the add-ons of this cluster.
func (a *agent) addOnSecrets(ctx context.Context) finding.Outcome {
	var list corev1.SecretList
	if err := a.Client.List(ctx, &list, client.MatchingLabels{names.LabelAddOnCredential: a.namespace()}); err != nil {
		return finding.Broken(err)
	}
	now := a.Clock.Now()
	var ended []string
	for i := range list.Items {
		secret := &list.Items[i]
		end, err := credentialEnd(secret.Data)
		switch {
		case err != nil:
			ended = append(ended, fmt.Sprintf("Secret %s/%s: %v", secret.Namespace, secret.Name, err))
		case !now.Before(end):
			ended = append(ended, fmt.Sprintf("Secret %s/%s expired at %s", secret.Namespace, secret.Name, credential.Timestamp(end)))
		}
	}
	if len(ended) > 0 {
		return finding.Bad(a.OnHub("addon-auth status --cluster", a.klusterlet.Spec.ClusterName), "%s", strings.Join(ended, "\n"))
	}
	return finding.Good("%d Secrets", len(list.Items))
}

// credentialEnd returns when the credential in a Secret expires.
func credentialEnd(data map[string][]byte) (time.Time, error) {
	if text := data[names.KeyExpiration]; len(text) > 0 {
		end, err := time.Parse(time.RFC3339, string(text))
		if err != nil {
			return end, fmt.Errorf("key %s is no time", names.KeyExpiration)
		}
		return end, nil
	}
	certs, err := pemutil.ParseCertificates(data[names.KeyTLSCert])
	if err != nil {
		return time.Time{}, fmt.Errorf("there is neither a token nor a certificate in it: %w", err)
	}
	return certs[0].NotAfter, nil
}
