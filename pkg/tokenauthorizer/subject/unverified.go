package subject

// Unverified returns what token says about itself, as far as it can be read. It
// proves nothing: it is for tokens that another component has vouched for, such as
// the API server that reviewed one, and for messages about a token.
func Unverified(token string) Token {
	a := &attempt{token: token}
	if checkSize(token) != nil || a.checkForm() != nil || a.checkHeader() != nil || a.checkPayload() != nil {
		return Token{}
	}
	t := &a.identity.Token
	*t = Token{
		Issuer: a.claims.issuer, KeyID: a.header.keyID, ID: a.claims.id, Audiences: a.claims.audiences,
		IssuedAt: a.claims.issuedAt, NotAfter: a.claims.expiry, Legacy: a.claims.flat && !a.claims.nested,
	}
	if !a.claims.warnAfter.IsZero() {
		a.endsBy(a.claims.warnAfter)
	}
	return *t
}
