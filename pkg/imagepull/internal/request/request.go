package request

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/content"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Pending returns an error that wraps credential.ErrRefreshRequested while a pull
// secret holds a token that was issued before the requested time. A time that
// cannot be read requests nothing.
func Pending(secret metav1.Object, s content.Summary) error {
	text := secret.GetAnnotations()[names.AnnotationPullSecretRefresh]
	after, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil //nolint:nilerr // Whoever may write the annotation may write the data as well.
	}
	for _, token := range s.Tokens {
		if token.Issued < after.Unix() {
			return fmt.Errorf("%w: of tokens issued before %s", credential.ErrRefreshRequested, text)
		}
	}
	return nil
}

// For is the value of the annotation that has a token replaced which was issued at
// a time. Tokens know the second of their issue.
func For(issued time.Time) string {
	return issued.Add(time.Second).UTC().Format(time.RFC3339)
}
