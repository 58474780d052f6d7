package subject_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

// shapes are about the text of a token.
func shapes() []hostileCase {
	text := func(token string) func(testing.TB, *hostile) string {
		return func(testing.TB, *hostile) string { return token }
	}
	alphabet := strings.NewReplacer("-", "+", "_", "/")
	return []hostileCase{
		{name: "a token that nobody touched is taken", token: changed(nil)},
		{name: "no token", token: text(""), want: denial.MissingToken},
		{name: "a word", token: text("token"), want: denial.Malformed},
		{name: "dots", token: text(".."), want: denial.Malformed},
		{name: "two segments", token: edited(func(h, p, _ string) string { return h + "." + p }), want: denial.Malformed},
		{name: "five segments, as an encrypted token", token: edited(func(h, p, s string) string { return strings.Join([]string{h, p, s, s, s}, ".") }), want: denial.Malformed},
		{name: "an empty header", token: edited(func(_, p, s string) string { return "." + p + "." + s }), want: denial.Malformed},
		{name: "an empty payload", token: edited(func(h, _, s string) string { return h + ".." + s }), want: denial.Malformed},
		{name: "an empty signature", token: edited(func(h, p, _ string) string { return h + "." + p + "." }), want: denial.Malformed},
		{name: "padding", token: edited(func(h, p, s string) string { return h + "." + p + "." + s + "==" }), want: denial.Malformed},
		{name: "a line break in the signature", token: edited(func(h, p, s string) string { return h + "." + p + "." + s[:8] + "\n" + s[8:] }), want: denial.Malformed},
		{name: "the other base64 alphabet", token: edited(func(h, p, s string) string { return h + "." + p + "." + alphabet.Replace(s+"-_") }), want: denial.Malformed},
		{name: "two tokens, as Envoy joins two headers", token: edited(func(h, p, s string) string { one := h + "." + p + "." + s; return one + "," + one }), want: denial.Malformed},
		{name: "a space before it", token: edited(func(h, p, s string) string { return " " + h + "." + p + "." + s }), want: denial.Malformed},
		{name: "bits that mean nothing", token: edited(meaningless), want: denial.Malformed},
		{name: "a payload that is no JSON", token: payload("junk"), want: denial.Malformed},
		{name: "a payload that is an array", token: payload("[]"), want: denial.Malformed},
		{name: "a payload with something after it", token: payload("{}{}"), want: denial.Malformed},
		{name: "a payload with invalid UTF-8", token: payload("{\"iss\":\"\xff\"}"), want: denial.Malformed},
		{name: "the longest token is taken", token: huge(0)},
		{name: "one byte more", token: huge(1), want: denial.Malformed},
		{name: "a megabyte", token: text(strings.Repeat("a", 1<<20)), want: denial.Malformed},
		{name: "a thousand levels", token: raw(`"x":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000)), want: denial.Malformed},
		{name: "a thousand members", token: raw(thousand()), want: ""},
	}
}

// payload signs any text under an honest header.
func payload(payload string) func(testing.TB, *hostile) string {
	return func(tb testing.TB, h *hostile) string { tb.Helper(); return h.sign(tb, honest(tb, h), payload) }
}

// honest is the text of a header that nobody touched.
func honest(tb testing.TB, h *hostile) string { tb.Helper(); return text(tb, h.header()) }

// meaningless sets a bit of the last character that decoding drops.
func meaningless(header, payload, signature string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := len(signature) - 1
	i := strings.IndexByte(alphabet, signature[last])
	return header + "." + payload + "." + signature[:last] + string(alphabet[i^1])
}

// huge is a good token of MaxTokenBytes and more.
func huge(more int) func(testing.TB, *hostile) string {
	return func(tb testing.TB, h *hostile) string {
		tb.Helper()
		// Base64 has no text of every length: the header's takes up the slack.
		for slack := range 4 {
			header := text(tb, h.header().with(object{"x": strings.Repeat("x", slack)}))
			for filler := subject.MaxTokenBytes / 4 * 3; filler > 0; filler-- {
				payload := len(text(tb, h.claims)) + len(`"x":"",`) + filler
				length := base64.RawURLEncoding.EncodedLen
				if length(len(header))+length(payload)+length(2048/8)+2 != subject.MaxTokenBytes+more {
					continue
				}
				return h.sign(tb, header, `{"x":"`+strings.Repeat("x", filler)+`",`+strings.TrimPrefix(text(tb, h.claims), "{"))
			}
		}
		tb.Fatal("no token of this length")
		return ""
	}
}

func thousand() string {
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, `%s"m%d":0`, strings.Repeat(",", min(i, 1)), i)
	}
	return b.String()
}

func headers() []hostileCase {
	return []hostileCase{
		{name: "alg none", token: headed(object{"alg": "none"}), want: denial.Malformed},
		{name: "alg NoNe", token: headed(object{"alg": "NoNe"}), want: denial.Malformed},
		{name: "alg none without a signature", token: unsigned, want: denial.Malformed},
		{name: "alg HS256 with the public key as its secret", token: confused, want: denial.Malformed},
		{name: "alg PS256", token: headed(object{"alg": "PS256"}), want: denial.Malformed},
		{name: "alg EdDSA", token: headed(object{"alg": "EdDSA"}), want: denial.Malformed},
		{name: "alg in small letters", token: headed(object{"alg": "rs256"}), want: denial.Malformed},
		{name: "no alg", token: headed(object{"alg": nil}), want: denial.Malformed},
		{name: "alg is a list", token: headed(object{"alg": []string{"RS256"}}), want: denial.Malformed},
		{name: "alg of another type of key", token: headed(object{"alg": "ES256"}), want: denial.BadSignature},
		{name: "alg with another hash", token: headed(object{"alg": "RS512"}), want: denial.BadSignature},
		{name: "two algs", token: func(tb testing.TB, h *hostile) string {
			tb.Helper()
			return h.sign(tb, `{"alg":"none",`+strings.TrimPrefix(honest(tb, h), "{"), text(tb, h.claims))
		}, want: denial.Malformed},
		{name: "ALG beside alg counts for nothing", token: headed(object{"ALG": "none"})},
		{name: "crit", token: headed(object{"crit": []string{"exp"}}), want: denial.Malformed},
		{name: "an empty crit", token: headed(object{"crit": []string{}}), want: denial.Malformed},
		{name: "b64", token: headed(object{"b64": false, "crit": []string{"b64"}}), want: denial.Malformed},
		{name: "typ JWT is taken", token: headed(object{"typ": "JWT"})},
		{name: "typ of another kind of token", token: headed(object{"typ": "at+jwt"}), want: denial.Malformed},
		{name: "a header that is no JSON", token: func(tb testing.TB, h *hostile) string { tb.Helper(); return h.sign(tb, "junk", text(tb, h.claims)) }, want: denial.Malformed},
	}
}

// unsigned is a token as it was once taken by many libraries.
func unsigned(tb testing.TB, h *hostile) string {
	tb.Helper()
	return encode([]byte(text(tb, h.header().with(object{"alg": "none"})))) + "." + encode([]byte(text(tb, h.claims))) + "." + encode([]byte("x"))
}

// confused is signed with what everybody knows.
func confused(tb testing.TB, h *hostile) string {
	tb.Helper()
	der, err := x509.MarshalPKIXPublicKey(h.Private.Public())
	if err != nil {
		tb.Fatal(err)
	}
	mac := hmac.New(sha256.New, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	signed := encode([]byte(text(tb, h.header().with(object{"alg": "HS256"})))) + "." + encode([]byte(text(tb, h.claims)))
	mac.Write([]byte(signed))
	return signed + "." + encode(mac.Sum(nil))
}

// keys are about who signed.
func keys() []hostileCase {
	// others signs with a key that is nobody's, under the header of a good token with changes.
	others := func(changes func(stranger *forge) object) func(testing.TB, *hostile) string {
		return func(tb testing.TB, h *hostile) string {
			tb.Helper()
			stranger := newForge(tb, h.ID, jwk.RS256)
			return stranger.sign(tb, text(tb, h.header().with(changes(stranger))), text(tb, h.claims))
		}
	}
	bring := func(changes object) func(*forge) object { return func(*forge) object { return changes } }
	return []hostileCase{
		{name: "another key under a known id", token: others(bring(nil)), want: denial.BadSignature},
		{name: "another key under its own id", token: others(bring(object{"kid": "mine"})), want: denial.UnknownKey},
		{name: "a key in the header", token: others(func(f *forge) object {
			return object{"jwk": object{"kty": "RSA", "kid": f.ID, "e": "AQAB", "n": "AAAA"}}
		}), want: denial.BadSignature},
		{name: "a URL of keys in the header", token: others(bring(object{"jku": "https://attacker.example.com/jwks"})), want: denial.BadSignature},
		{name: "a URL of certificates in the header", token: others(bring(object{"x5u": "https://attacker.example.com/chain"})), want: denial.BadSignature},
		{name: "certificates in the header", token: others(bring(object{"x5c": []string{"AAAA"}})), want: denial.BadSignature},
		{name: "a URL of keys in the header of a good token is not followed", token: headed(object{"jku": "https://attacker.example.com/jwks"})},
		{name: "no key id", token: headed(object{"kid": nil}), want: denial.UnknownKey},
		{name: "an empty key id", token: headed(object{"kid": ""}), want: denial.UnknownKey},
		{name: "a key id that climbs", token: headed(object{"kid": "../../../../dev/null"}), want: denial.UnknownKey},
		{name: "a key id that injects", token: headed(object{"kid": "x' UNION SELECT 'key"}), want: denial.UnknownKey},
		{name: "a key id with a NUL", token: headed(object{"kid": "key-1\x00"}), want: denial.UnknownKey},
		{name: "a huge key id", token: headed(object{"kid": strings.Repeat("k", 4096)}), want: denial.UnknownKey},
		{name: "a key id that is a number", token: headed(object{"kid": 1}), want: denial.Malformed},
		{name: "an EC signature of nulls", token: nulls, want: denial.BadSignature},
		{name: "a changed payload", token: edited(func(h, p, s string) string { return h + "." + flip(p) + "." + s }), want: denial.BadSignature},
		{name: "a changed signature", token: edited(func(h, p, s string) string { return h + "." + p + "." + s[:10] + "AAAA" + s[14:] }), want: denial.BadSignature},
		{name: "a shortened signature", token: edited(func(h, p, s string) string { return h + "." + p + "." + s[:len(s)/4*4-4] }), want: denial.BadSignature},
		{name: "an unknown issuer", token: changed(object{"iss": "https://attacker.example.com"}), want: denial.UnknownIssuer},
		{name: "an issuer with a slash more", token: changed(object{"iss": issuer + "/"}), want: denial.UnknownIssuer},
		{name: "an issuer in capital letters", token: changed(object{"iss": strings.ToUpper(issuer)}), want: denial.UnknownIssuer},
		{name: "no issuer", token: changed(object{"iss": nil}), want: denial.Malformed},
		{name: "issuers", token: changed(object{"iss": []string{issuer}}), want: denial.Malformed},
		{name: "an issuer that is null", token: raw(`"iss2":0,"iss":null`), want: denial.Malformed},
	}
}

// flip changes a digit of the UID in a payload, and keeps it JSON.
func flip(payload string) string {
	data, _ := base64.RawURLEncoding.DecodeString(payload)
	at := strings.Index(string(data), `"uid":"`) + len(`"uid":"`)
	data[at] = map[bool]byte{true: '1', false: '0'}[data[at] == '0']
	return encode(data)
}

// nulls has r and s zero, which a careless verifier takes (CVE-2022-21449).
func nulls(tb testing.TB, h *hostile) string {
	tb.Helper()
	ec := newForge(tb, "ec-"+tb.Name(), jwk.ES256)
	h.keys.add("forged", issuer, ec.key())
	good := ec.token(tb, h.claims)
	return good[:strings.LastIndexByte(good, '.')+1] + encode(make([]byte, 64))
}
