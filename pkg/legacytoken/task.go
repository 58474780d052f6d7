package legacytoken

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"
)

// Task is the plan for one Secret, with how it is carried out.
type Task struct {
	Secret types.NamespacedName
	Plan   Plan

	act func(context.Context) error
}

// NewTask returns the task to change a token Secret.
func NewTask(t *Token, plan Plan, act func(context.Context) error) Task {
	return Task{Secret: t.Key(), Plan: plan, act: act}
}

// Do carries out the plan and returns it, or a rejection if the Secret has changed since it
// was evaluated or its backup is that of another Secret.
func (t Task) Do(ctx context.Context) (Plan, error) {
	if t.Plan.Action != ActionApply {
		return t.Plan, nil
	}
	err := t.act(ctx)
	if errors.Is(err, ErrChanged) || errors.Is(err, ErrOtherBackup) {
		return Plan{Action: ActionReject, Reason: err.Error()}, nil
	}
	return t.Plan, err
}

// Tasks returns a task for each pull secret that a token feeds, which migrate carries out. For
// a token that feeds none it returns a task without an action.
func (m *Migration) Tasks(ctx context.Context, t *Token, migrate func(context.Context, PullSecret) error) ([]Task, error) {
	if len(t.PullSecrets) == 0 {
		return []Task{{Secret: t.Key(), Plan: nothing("it feeds no pull secret")}}, nil
	}
	var tasks []Task
	for _, p := range t.PullSecrets {
		plan, err := m.Plan(ctx, t, p)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, Task{
			Secret: types.NamespacedName{Namespace: p.Namespace, Name: p.Name}, Plan: plan,
			act: func(ctx context.Context) error { return migrate(ctx, p) },
		})
	}
	return tasks, nil
}
