package cloud

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	"github.com/prometheus/client_golang/prometheus"
)

// Results of a request to AWS.
const (
	resultSuccess   = "success"
	resultDenied    = "denied"
	resultThrottled = "throttled"
	resultFailure   = "failure"
)

// Metrics counts requests to AWS, each attempt of a call by itself.
type Metrics struct {
	requests *prometheus.CounterVec
}

// NewMetrics registers the metrics. A registry can have them once.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{requests: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ocm_registration_aws_requests_total",
		Help: "Number of requests of the hub to AWS, by service, operation and result (success, denied, throttled, failure).",
	}, []string{"service", "operation", "result"})}
	return m, registry.Register(m.requests)
}

// Count has the clients that are made with config count their requests.
func (m *Metrics) Count(config *aws.Config) {
	config.APIOptions = append(config.APIOptions, func(stack *middleware.Stack) error {
		return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("CountRequests", m.count), middleware.Before)
	})
}

// count stands around a single attempt: below the retries, above the reading of
// the answer.
func (m *Metrics) count(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (
	out middleware.DeserializeOutput, metadata middleware.Metadata, err error,
) {
	out, metadata, err = next.HandleDeserialize(ctx, in)
	m.requests.WithLabelValues(strings.ToLower(awsmiddleware.GetServiceID(ctx)), awsmiddleware.GetOperationName(ctx), result(err)).Inc()
	return out, metadata, err
}

func result(err error) string {
	if err == nil {
		return resultSuccess
	}
	answer, ok := errors.AsType[smithy.APIError](err)
	switch {
	case !ok:
		return resultFailure
	case strings.HasPrefix(answer.ErrorCode(), "AccessDenied"):
		return resultDenied
	case strings.HasPrefix(answer.ErrorCode(), "Throttling"), strings.HasPrefix(answer.ErrorCode(), "TooManyRequests"):
		return resultThrottled
	}
	return resultFailure
}
