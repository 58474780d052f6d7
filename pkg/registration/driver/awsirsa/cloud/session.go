package cloud

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
)

// renewing returns config with credentials that are fetched again after AWS has
// rejected the session. The SDK caches a session until its expiry; an administrator,
// or the deletion of the role, can end it earlier.
func renewing(config aws.Config) aws.Config {
	cached, ok := config.Credentials.(*aws.CredentialsCache)
	if !ok {
		return config
	}
	watch := func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
		out, metadata, err := next.HandleDeserialize(ctx, in)
		if answer, ok := errors.AsType[smithy.APIError](err); ok && noSession(answer.ErrorCode()) {
			cached.Invalidate()
		}
		return out, metadata, err
	}
	config.APIOptions = append(slices.Clip(config.APIOptions), func(stack *middleware.Stack) error {
		return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("RenewSession", watch), middleware.Before)
	})
	return config
}

// noSession reports whether AWS knows no session, or user, of the credentials.
func noSession(code string) bool {
	switch code {
	case "ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId", "UnrecognizedClientException":
		return true
	}
	return false
}
