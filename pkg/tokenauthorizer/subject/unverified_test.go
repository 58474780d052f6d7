package subject_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

func TestUnverified(t *testing.T) {
	t.Parallel()
	f := newForge(t, "key-1", jwk.RS256)
	want := subject.Token{
		Issuer: issuer, KeyID: "key-1", ID: "9d6f2c1e", Audiences: []string{audience},
		IssuedAt: time.Unix(fuzzTime, 0), NotAfter: time.Unix(fuzzTime+3600, 0),
	}
	for name, tt := range map[string]struct {
		token string
		want  subject.Token
	}{
		"a bound token": {f.token(t, example()), want},
		"nothing":       {"", subject.Token{}},
		"junk":          {"a.b.c", subject.Token{}},
		"a huge token":  {strings.Repeat("a", subject.MaxTokenBytes+1), subject.Token{}},
		"no JSON":       {f.sign(t, text(t, f.header()), "junk"), subject.Token{}},
		"alg none":      {f.sign(t, `{"alg":"none"}`, text(t, example())), subject.Token{}},
	} {
		if diff := cmp.Diff(tt.want, subject.Unverified(tt.token)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	soon := example()
	soon["kubernetes.io"] = object{"warnafter": fuzzTime + 60}
	if got := subject.Unverified(f.token(t, soon)).NotAfter; !got.Equal(time.Unix(fuzzTime+60, 0)) {
		t.Errorf("ends at %v, want when it should have been renewed", got)
	}
}
