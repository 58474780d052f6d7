package v1alpha1

// Keys is where the keys that sign a cluster's tokens come from: exactly one of
// jwks, jwksURI and discovery.
//
// +kubebuilder:validation:XValidation:rule="[has(self.jwks), has(self.jwksURI), has(self.discovery)].exists_one(x, x)",message="name exactly one of jwks, jwksURI and discovery"
// +kubebuilder:validation:XValidation:rule="!has(self.jwks) || !has(self.ca)",message="ca is for jwksURI and discovery, which connect to a server"
// +kubebuilder:validation:XValidation:rule="!has(self.jwks) || !has(self.pins)",message="pins are for keys that are fetched: leave the other keys out of jwks"
type Keys struct {
	// jwks is the key set itself, as "kubectl get --raw /openid/v1/jwks" prints it.
	// It must be replaced when the cluster rotates its keys.
	//
	// +optional
	JWKS *KeySet `json:"jwks,omitempty"`
	// jwksURI is the https URL of the key set.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() == 'https' && url(self).getHostname().size() > 0 && !self.contains('@')",message="must be an https URL without a user or password"
	JWKSURI string `json:"jwksURI,omitempty"`
	// discovery finds the key set by OpenID Connect discovery.
	//
	// +optional
	Discovery *Discovery `json:"discovery,omitempty"`
	// ca is a PEM bundle that verifies the server of jwksURI or discovery. Without
	// it the system's roots do.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=131072
	// +kubebuilder:validation:XValidation:rule="self.contains('-----BEGIN CERTIFICATE-----')",message="must be certificates in PEM"
	CA string `json:"ca,omitempty"`
	// pins are the only keys to accept, by key ID or RFC 7638 thumbprint.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Pins []string `json:"pins,omitempty"`
	// staleFor is how long fetched keys are used after their server last answered.
	// The default is 24h.
	//
	// +optional
	StaleFor Duration `json:"staleFor,omitempty"`
}

// Discovery is OpenID Connect discovery.
type Discovery struct {
	// url is where the discovery document is. The default is the issuer.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() == 'https' && url(self).getHostname().size() > 0 && !self.contains('@')",message="must be an https URL without a user or password"
	URL string `json:"url,omitempty"`
}

// KeySet is a JSON Web Key Set with public keys (RFC 7517).
type KeySet struct {
	// keys are the public keys.
	//
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Keys []Key `json:"keys"`
}

// Key is a public JSON Web Key that verifies signatures: RSA of 2048 bits or
// more, or EC on P-256, P-384 or P-521.
//
// +kubebuilder:validation:XValidation:rule="self.kty == 'RSA' ? has(self.n) && has(self.e) : has(self.crv) && has(self.x) && has(self.y)",message="an RSA key has n and e, an EC key has crv, x and y"
// +kubebuilder:validation:XValidation:rule="!has(self.alg) || (self.kty == 'RSA') == (self.alg.startsWith('RS') || self.alg.startsWith('PS'))",message="alg does not fit kty"
type Key struct {
	// kty is the type of the key.
	//
	// +required
	// +kubebuilder:validation:Enum=RSA;EC
	KeyType string `json:"kty"`
	// kid is the ID of the key, which tokens name.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	KeyID string `json:"kid"`
	// use is what the key is for.
	//
	// +optional
	// +kubebuilder:validation:Enum=sig
	Use string `json:"use,omitempty"`
	// alg is the only algorithm that the key is used with.
	//
	// +optional
	// +kubebuilder:validation:Enum=RS256;RS384;RS512;PS256;PS384;PS512;ES256;ES384;ES512
	Algorithm string `json:"alg,omitempty"`
	// n is the modulus of an RSA key.
	//
	// +optional
	// +kubebuilder:validation:MinLength=342
	// +kubebuilder:validation:MaxLength=2800
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]+$`
	N string `json:"n,omitempty"`
	// e is the exponent of an RSA key.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]+$`
	E string `json:"e,omitempty"`
	// crv is the curve of an EC key.
	//
	// +optional
	// +kubebuilder:validation:Enum=P-256;P-384;P-521
	Curve string `json:"crv,omitempty"`
	// x is a coordinate of an EC key.
	//
	// +optional
	// +kubebuilder:validation:MinLength=43
	// +kubebuilder:validation:MaxLength=88
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]+$`
	X string `json:"x,omitempty"`
	// y is the other coordinate of an EC key.
	//
	// +optional
	// +kubebuilder:validation:MinLength=43
	// +kubebuilder:validation:MaxLength=88
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]+$`
	Y string `json:"y,omitempty"`
}
