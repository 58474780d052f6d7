package pause_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
)

func TestFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		clk := clock.RealClock{}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := clk.Now()
		if !pause.For(ctx, clk, 40*time.Second) || clk.Since(began) != 40*time.Second {
			t.Errorf("the first pause took %v", clk.Since(began))
		}
		if pause.For(ctx, clk, 40*time.Second) || clk.Since(began) != time.Minute {
			t.Errorf("the second pause ended after %v", clk.Since(began))
		}
	})
}
