package logs_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/logs"
)

// TestTraces has a secret in every place of a text, also encoded.
func TestTraces(t *testing.T) {
	t.Parallel()
	const secret = "\xfb\xff\xbfsecret-\xfb\xff\xbf"
	found := func(entry string) bool {
		log := &logs.Log{}
		if _, err := fmt.Fprintln(log, entry); err != nil {
			t.Fatal(err)
		}
		for _, trace := range logs.Traces(secret) {
			if log.With(trace) != "" {
				return true
			}
		}
		return false
	}
	for before := range 4 {
		text := strings.Repeat("x", before) + secret + " and more"
		for name, entry := range map[string]string{
			"as it is":                text,
			"encoded":                 base64.StdEncoding.EncodeToString([]byte(text)),
			"encoded for a URL":       base64.URLEncoding.EncodeToString([]byte(text)),
			"encoded without padding": base64.RawStdEncoding.EncodeToString([]byte(text)),
		} {
			if !found(entry) {
				t.Errorf("%s after %d bytes the secret is not found", name, before)
			}
		}
	}
	if found("nothing secret") {
		t.Error("a secret is found where there is none")
	}
}
