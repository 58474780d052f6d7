package subject_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

func times() []hostileCase {
	const year = 365 * 24 * 3600
	old := func(r *subject.Rules) { r.MaxAge = time.Second }
	unlimited := func(r *subject.Rules) { r.MaxAge = 0 }
	return []hostileCase{
		{name: "a second before its end", token: after(map[string]int64{"exp": 2})},
		{name: "at its end", token: after(map[string]int64{"exp": 1}), want: denial.Expired},
		{name: "50 s past its end", token: after(map[string]int64{"exp": -49}), want: denial.Expired},
		{name: "no end", token: changed(object{"exp": nil}), want: denial.Expired},
		{name: "an end that is a text", token: changed(object{"exp": "1999999999"}), want: denial.Malformed},
		{name: "an end that is null", token: raw(`"exp2":0,"exp":null`), want: denial.Malformed},
		{name: "an end before all time", token: changed(object{"exp": -1}), want: denial.Malformed},
		{name: "an end after all time", token: changed(object{"exp": 1e30}), want: denial.Malformed},
		{name: "an end at the epoch", token: changed(object{"exp": 0}), want: denial.Expired},
		{name: "begins within the skew", token: after(map[string]int64{"nbf": 11})},
		{name: "begins after the skew", token: after(map[string]int64{"nbf": 12}), want: denial.NotYetValid},
		{name: "issued within the skew", token: after(map[string]int64{"iat": 11})},
		{name: "issued in the future", token: after(map[string]int64{"iat": 12}), want: denial.NotYetValid},
		{name: "no beginning is taken", token: changed(object{"nbf": nil})},
		{name: "no date of issue", token: changed(object{"iat": nil}), want: denial.TooOld},
		{name: "no date of issue where no age is demanded", token: changed(object{"iat": nil}), rules: unlimited},
		{name: "a year to live, issued an hour ago", token: after(map[string]int64{"iat": 1 - 3600, "exp": year}), want: denial.TooOld},
		{name: "a year to live, issued a second less than an hour ago", token: after(map[string]int64{"iat": 2 - 3600, "exp": year})},
		{name: "older than the cluster takes", token: changed(nil), rules: old, want: denial.TooOld},
		{name: "intended to end later", token: warned(2)},
		{name: "intended to have ended", token: warned(1), want: denial.Expired},
		{name: "an intended end that is a text", token: nested(object{"warnafter": "soon"}), want: denial.Malformed},
	}
}

// warned says when the token should have been renewed.
func warned(seconds int64) func(testing.TB, *hostile) string {
	return func(tb testing.TB, h *hostile) string {
		tb.Helper()
		return h.nested(tb, object{"warnafter": h.issued + seconds})
	}
}

func accounts() []hostileCase {
	account := func(name, uid any) object {
		return object{"serviceaccount": forged{}.with(object{"name": name, "uid": uid})}
	}
	pod := func(r *subject.Rules) { r.RequirePod = true }
	return []hostileCase{
		{name: "an audience as text is taken", token: changed(object{"aud": audience})},
		{name: "ours among others is taken", token: changed(object{"aud": []string{"a", audience, "b"}})},
		{name: "another audience", token: changed(object{"aud": []string{"https://other.example.com"}}), want: denial.WrongAudience},
		{name: "another audience as text", token: changed(object{"aud": "https://other.example.com"}), want: denial.WrongAudience},
		{name: "a part of our audience", token: changed(object{"aud": "https://hub.example"}), want: denial.WrongAudience},
		{name: "our audience and more", token: changed(object{"aud": audience + ".attacker.example.com"}), want: denial.WrongAudience},
		{name: "no audience", token: changed(object{"aud": nil}), want: denial.WrongAudience},
		{name: "an empty audience", token: changed(object{"aud": []string{}}), want: denial.WrongAudience},
		{name: "an audience of numbers", token: changed(object{"aud": []int{1}}), want: denial.Malformed},
		{name: "an audience that is an object", token: changed(object{"aud": object{}}), want: denial.Malformed},
		{name: "no audience is ours", token: changed(nil), rules: func(r *subject.Rules) { r.Audiences = nil }, want: denial.WrongAudience},

		{name: "no kubernetes.io", token: changed(object{"kubernetes.io": nil}), want: denial.ClaimsMismatch},
		{name: "an empty kubernetes.io", token: changed(object{"kubernetes.io": object{}}), want: denial.ClaimsMismatch},
		{name: "a kubernetes.io that is a text", token: changed(object{"kubernetes.io": "x"}), want: denial.Malformed},
		{name: "KUBERNETES.IO", token: changed(object{"kubernetes.io": nil, "KUBERNETES.IO": object{}}), want: denial.ClaimsMismatch},
		{name: "no namespace", token: nested(object{"namespace": nil}), want: denial.ClaimsMismatch},
		{name: "a namespace that climbs", token: nested(object{"namespace": "../kube-system"}), want: denial.ClaimsMismatch},
		{name: "a namespace with a dot", token: nested(object{"namespace": "kube.system"}), want: denial.ClaimsMismatch},
		{name: "a namespace that is too long", token: nested(object{"namespace": strings.Repeat("a", 64)}), want: denial.ClaimsMismatch},
		{name: "a namespace with a line break", token: nested(object{"namespace": "default\n"}), want: denial.ClaimsMismatch},
		{name: "no account", token: nested(object{"serviceaccount": nil}), want: denial.ClaimsMismatch},
		{name: "no name", token: nested(account(nil, "u")), want: denial.ClaimsMismatch},
		{name: "a name with a colon", token: nested(account("a:b", "u")), want: denial.ClaimsMismatch},
		{name: "a name in capital letters", token: nested(account("Reader", "u")), want: denial.ClaimsMismatch},
		{name: "no UID", token: nested(account("reader", nil)), want: denial.ClaimsMismatch},
		{name: "an empty UID", token: nested(account("reader", "")), want: denial.ClaimsMismatch},
		{name: "a UID that is a number", token: nested(account("reader", 1)), want: denial.Malformed},
		{name: "a subject that contradicts the account", token: nested(account("admin", "u")), want: denial.ClaimsMismatch},
		{name: "a subject in another namespace", token: nested(object{"namespace": "kube-system"}), want: denial.ClaimsMismatch},
		{name: "no subject", token: changed(object{"sub": nil}), want: denial.ClaimsMismatch},
		{name: "a subject that is a person", token: changed(object{"sub": "alice"}), want: denial.ClaimsMismatch},
		{name: "nested and flat claims", token: func(tb testing.TB, h *hostile) string { tb.Helper(); return h.changed(tb, h.flat(tb)) }, want: denial.ClaimsMismatch},
		{name: "nested and flat claims, from a file like tokensmith's", token: func(tb testing.TB, h *hostile) string { tb.Helper(); return h.changed(tb, h.flat(tb)) }, rules: openRules, want: denial.ClaimsMismatch},

		{name: "a repeated claim", token: raw(`"sub":"system:serviceaccount:kube-system:admin"`), want: denial.Malformed},
		{name: "a repeated claim, escaped", token: raw(`"\u0073ub":"system:serviceaccount:kube-system:admin"`), want: denial.Malformed},
		{name: "a repeated kubernetes.io", token: raw(`"kubernetes.io":{"namespace":"kube-system"}`), want: denial.Malformed},
		{name: "a repeated member in a claim that nobody knows", token: raw(`"x":{"y":[{"z":1,"z":2}]}`), want: denial.Malformed},
		{name: "claims in other letters count for nothing", token: raw(`"SUB":"system:serviceaccount:kube-system:admin","Aud":[],"EXP":0`)},
		{name: "claims that nobody knows are taken", token: raw(`"x":{"y":[null,true,-1.5e3,"z"]}`)},
		{name: "bound to something that is not known yet is taken", token: nested(object{"webhook": object{"name": "x", "uid": "y", "rules": []int{1}}})},

		{name: "a Pod that is demanded", token: changed(nil), rules: pod},
		{name: "no Pod where one is demanded", token: nested(object{"pod": nil}), rules: pod, want: denial.NotBound},
		{name: "a Pod without UID where one is demanded", token: nested(object{"pod": object{"name": "x"}}), rules: pod, want: denial.NotBound},
		{name: "a Pod that is a text", token: nested(object{"pod": "x"}), want: denial.Malformed},
	}
}

func openRules(r *subject.Rules) { *r = subject.Rules{Open: true, Skew: subject.DefaultSkew} }

func legacies() []hostileCase {
	taken := func(r *subject.Rules) { r.Legacy = true }
	none := func(r *subject.Rules) { *r = *strict() }
	return []hostileCase{
		{name: "a Secret's token", token: legacy(nil), rules: none, want: denial.LegacyToken},
		{name: "a Secret's token where it is allowed is taken", token: legacy(nil), rules: taken},
		{name: "a Secret's token that has ended", token: legacy(object{"exp": 1}), rules: taken, want: denial.Expired},
		{name: "a Secret's token from the future", token: legacy(object{"iat": int64(1e11)}), rules: taken, want: denial.NotYetValid},
		{name: "a Secret's token for another audience", token: legacy(object{"aud": "x"}), rules: taken, want: denial.WrongAudience},
		{name: "an old Secret's token", token: legacy(object{"iat": 1}), rules: taken, want: denial.TooOld},
		{name: "a Secret's token without UID", token: legacy(object{"kubernetes.io/serviceaccount/service-account.uid": nil}), rules: taken, want: denial.ClaimsMismatch},
		{name: "a Secret's token of another subject", token: legacy(object{"sub": "system:serviceaccount:kube-system:admin"}), rules: taken, want: denial.ClaimsMismatch},
		{
			name: "a Secret's token where a Pod is demanded", token: legacy(nil),
			rules: func(r *subject.Rules) { r.Legacy, r.RequirePod = true, true }, want: denial.NotBound,
		},
		{name: "a Secret's token of an issuer that nobody has", token: legacy(object{"iss": "x"}), rules: taken, want: denial.LegacyToken},
	}
}

// opens are about a file of tokensmith's form.
func opens() []hostileCase {
	return []hostileCase{
		{name: "open: no audience is taken", token: changed(object{"aud": nil}), rules: openRules},
		{name: "open: another audience is taken", token: changed(object{"aud": "x"}), rules: openRules},
		{
			name: "open: another audience is refused if one is configured", token: changed(object{"aud": "x"}),
			rules: func(r *subject.Rules) { openRules(r); r.Audiences = []string{audience} }, want: denial.WrongAudience,
		},
		{name: "open: no date of issue is taken", token: changed(object{"iat": nil}), rules: openRules},
		{name: "open: an old token is taken until its end", token: after(map[string]int64{"iat": -7200}), rules: openRules},
		{name: "open: a bound token without end", token: changed(object{"exp": nil}), rules: openRules, want: denial.Expired},
		{name: "open: a bound token after its end", token: changed(object{"exp": 1}), rules: openRules, want: denial.Expired},
		{name: "open: a bound token before its beginning", token: after(map[string]int64{"nbf": 60}), rules: openRules, want: denial.NotYetValid},
		{name: "open: a Secret's token is taken", token: legacy(nil), rules: openRules},
		{name: "open: a Secret's token after its end", token: legacy(object{"exp": 1}), rules: openRules, want: denial.Expired},
		{name: "open: a Secret's token before its beginning", token: legacy(object{"nbf": int64(1e11)}), rules: openRules, want: denial.NotYetValid},
		{name: "open: a contradicting subject", token: changed(object{"sub": "system:serviceaccount:a:b"}), rules: openRules, want: denial.ClaimsMismatch},
		{name: "open: an empty UID", token: legacy(object{"kubernetes.io/serviceaccount/service-account.uid": ""}), rules: openRules, want: denial.ClaimsMismatch},
	}
}
