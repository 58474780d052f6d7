package subject

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
)

// checkClaimsForm decides which claims name the account. Kubernetes never mixes
// the forms, and who reads a mixed token could be shown either account.
func (a *attempt) checkClaimsForm() *denial.Error {
	switch {
	case a.claims.nested && a.claims.flat:
		return denial.New(denial.ClaimsMismatch, "it names its account twice, in the claim kubernetes.io and in flat claims")
	case a.claims.nested:
		return nil
	case !a.claims.flat:
		return denial.New(denial.ClaimsMismatch, "it is no ServiceAccount's token: it has no claim kubernetes.io")
	case !a.rules.Legacy && !a.rules.Open:
		return denial.New(denial.LegacyToken,
			"it is a Secret's token, which has no audience and never ends; use a token of a TokenRequest or a projected volume")
	}
	a.identity.Token.Legacy = true
	return nil
}

func (a *attempt) checkAudience() *denial.Error {
	has, want := a.claims.audiences, a.rules.Audiences
	a.identity.Token.Audiences = has
	switch {
	case slices.ContainsFunc(has, isProof):
		return denial.New(denial.WrongAudience, "it proves to the hub which key its cluster signs with, and is for nothing else")
	case a.rules.Open && len(want) == 0:
		return nil
	case a.identity.Token.Legacy && len(has) == 0:
		return nil
	case len(want) == 0:
		return denial.New(denial.WrongAudience, "no audience is configured for the cluster %s", a.identity.Cluster)
	case len(has) == 0:
		return denial.New(denial.WrongAudience, "it is for no audience, and one of %q is demanded", want)
	case !slices.ContainsFunc(has, func(one string) bool { return slices.Contains(want, one) }):
		return denial.New(denial.WrongAudience, "it is for %s, and one of %q is demanded", clip(fmt.Sprintf("%q", has)), want)
	}
	return nil
}

// isProof finds tokens that clusters show to the hub in ConfigMaps, which others
// may read. A file without audiences would take them.
func isProof(audience string) bool { return strings.HasPrefix(audience, names.IssuerProofPrefix) }

// checkAccount demands what every name of an account must look like, because
// policies, paths and cache keys are made of them.
func (a *attempt) checkAccount() *denial.Error {
	account := a.claims.account
	if faults := validation.IsDNS1123Label(account.Namespace); len(faults) > 0 {
		return denial.New(denial.ClaimsMismatch, "its namespace %q is not the name of one", clip(account.Namespace))
	}
	if faults := validation.IsDNS1123Subdomain(account.Name); len(faults) > 0 {
		return denial.New(denial.ClaimsMismatch, "its ServiceAccount %q is not the name of one", clip(account.Name))
	}
	if account.UID == "" {
		return denial.New(denial.ClaimsMismatch, "its ServiceAccount %s/%s has no UID", account.Namespace, account.Name)
	}
	return nil
}

func (a *attempt) checkSubject() *denial.Error {
	account := a.claims.account
	if want := names.ServiceAccountUser(account.Namespace, account.Name); a.claims.subject != want {
		return denial.New(denial.ClaimsMismatch, "its subject (sub) is %q, and its account %q", clip(a.claims.subject), want)
	}
	a.identity.Account = account
	return nil
}

func (a *attempt) checkBinding() *denial.Error {
	if a.rules.RequirePod && (a.claims.bound.Pod.Name == "" || a.claims.bound.Pod.UID == "") {
		return denial.New(denial.NotBound, "it is not bound to a Pod, which the cluster %s demands", a.identity.Cluster)
	}
	a.identity.Bound = a.claims.bound
	return nil
}

func (a *attempt) foundSize() string { return fmt.Sprintf("%d bytes", len(a.token)) }

func (a *attempt) foundHeader() string {
	return fmt.Sprintf("algorithm %s, key id %q", a.header.algorithm, clip(a.header.keyID))
}

func (a *attempt) foundKey() string {
	if len(a.candidates) == 1 {
		return "a key of the cluster " + a.candidates[0].Cluster
	}
	return fmt.Sprintf("%d keys have this id; the signature decides", len(a.candidates))
}

func (a *attempt) foundSignature() string {
	return "made by a key of the cluster " + a.identity.Cluster
}

func (a *attempt) foundRules() string {
	if a.rules.Open {
		return "those of a file without a policy: no audience, no oldest age"
	}
	return "those of the cluster " + a.identity.Cluster
}

func (a *attempt) foundClaimsForm() string {
	if a.identity.Token.Legacy {
		return "flat, as in a Secret's token"
	}
	return "nested, as in a bound token"
}

func (a *attempt) foundAudience() string {
	if len(a.rules.Audiences) == 0 {
		return "not demanded"
	}
	return fmt.Sprintf("%q", a.claims.audiences)
}

func (a *attempt) foundAccount() string {
	account := a.claims.account
	return fmt.Sprintf("%s/%s, UID %s", account.Namespace, account.Name, account.UID)
}

func (a *attempt) foundBinding() string {
	for _, bound := range []struct {
		kind   string
		object Object
	}{{"Pod", a.claims.bound.Pod}, {"Secret", a.claims.bound.Secret}, {"Node", a.claims.bound.Node}} {
		if bound.object.Name != "" {
			return "to the " + bound.kind + " " + bound.object.Name
		}
	}
	return "to nothing but the account"
}
