package rules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/status"
)

// request asks for the conditions that rules set on an object.
type request struct {
	Object *unstructured.Unstructured `json:"object"`
	Rules  []workv1.ConditionRule     `json:"rules"`
}

// answer is what they set.
type answer struct {
	Conditions []metav1.Condition `json:"conditions"`
}

// Serve is the life of an evaluating process: it answers requests until in ends. For each
// request it limits the CPU time that the process may have; once, its memory.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	if err := limitMemory(); err != nil {
		return fmt.Errorf("limit the memory of rules: %w", err)
	}
	crashOnTimeUp()
	rules, requests, answers := status.NewRules(), json.NewDecoder(in), json.NewEncoder(out)
	for {
		var r request
		err := requests.Decode(&r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := limitTime(); err != nil {
			return fmt.Errorf("limit the CPU time of rules: %w", err)
		}
		conditions := rules.Evaluate(ctx, r.Object, r.Rules)
		if err := answers.Encode(answer{conditions}); err != nil {
			return err
		}
	}
}
