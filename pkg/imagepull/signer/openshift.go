package signer

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// OpenShift is the Source that reads the Secret where OpenShift keeps the keys that
// sign bound tokens. The key set has the keys from before a rotation for as long as
// an administrator leaves them; the Secret has not. Where there is no such Secret,
// as on hosted control planes, or it may not be read, keySet answers.
func OpenShift(live client.Reader, keySet Source) Source {
	return func(ctx context.Context) ([]string, error) {
		var secret corev1.Secret
		err := live.Get(ctx, client.ObjectKey{Namespace: names.OpenShiftSignerNamespace, Name: names.OpenShiftSignerSecret}, &secret)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			return keySet(ctx)
		} else if err != nil {
			return nil, fmt.Errorf("read the Secret of the signing keys: %w", err)
		}
		return pemKeyIDs(secret.Data[names.OpenShiftSignerKey])
	}
}

// pemKeyIDs are the ids of public keys in PEM, as an API server names them: the hash
// of the key in DER.
func pemKeyIDs(data []byte) ([]string, error) {
	var ids []string
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		der, err := publicKey(block)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(der)
		ids = append(ids, base64.RawURLEncoding.EncodeToString(sum[:]))
	}
	if len(ids) == 0 {
		return nil, errors.New("the Secret of the signing keys has no public key under " + names.OpenShiftSignerKey)
	}
	return ids, nil
}

// publicKey is a block as PKIX, which older tools write as PKCS #1.
func publicKey(block *pem.Block) ([]byte, error) {
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if block.Type == "RSA PUBLIC KEY" && err != nil {
		key, err = x509.ParsePKCS1PublicKey(block.Bytes)
	}
	if err != nil {
		return nil, errors.New("the Secret of the signing keys has data other than public keys under " + names.OpenShiftSignerKey)
	}
	return x509.MarshalPKIXPublicKey(key)
}
