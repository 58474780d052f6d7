package rules_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/rules"
)

// role says what the test binary is when a test starts it.
const role = "TEST_RULES_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "serve":
		if err := rules.Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "fail":
		os.Exit(1)
	default:
		goleak.VerifyTestMain(m)
	}
}
