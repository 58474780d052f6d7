// Package jwt reads JSON Web Tokens that somebody else vouches for, such as one
// that an API server just issued over a verified connection, and tokens that are
// only to be told apart. It verifies nothing: tokens of strangers go to package
// subject of the token authorizer.
package jwt
