package install

import "context"

// Installation is one run of init or join: the phases that both have in common.
type Installation struct {
	// Prepared is the result of Check.
	Prepared Prepared
	// Outcome describes the run so far.
	Outcome Outcome

	runner  *Runner
	title   string
	prepare func(context.Context) (Prepared, error)
}

// NewInstallation returns an installation of the objects that prepare renders. prepare
// gathers the facts and checks them; title names the step that applies the objects.
func (r *Runner) NewInstallation(title string, prepare func(context.Context) (Prepared, error)) *Installation {
	return &Installation{runner: r, title: title, prepare: prepare}
}

// Check is the phase that checks the cluster. It returns all findings together.
func (i *Installation) Check(ctx context.Context) (err error) {
	i.Outcome.Warnings, err = i.runner.Preflight(ctx, func(ctx context.Context) (_ []Finding, err error) {
		i.Prepared, err = i.prepare(ctx)
		return i.Prepared.Findings, err
	})
	return err
}

// Begin is the phase that runs the steps of a take-over that precede our own objects.
func (i *Installation) Begin(ctx context.Context) error {
	return i.runner.BeginTakeOver(ctx, i.Prepared.Over)
}

// ApplyObjects is the phase that applies the objects.
func (i *Installation) ApplyObjects(ctx context.Context) (err error) {
	i.Outcome.Changes, err = i.runner.Apply(ctx, i.title, i.Prepared.Objects)
	return err
}

// Finish is the phase that removes the installation that a take-over has replaced.
func (i *Installation) Finish(ctx context.Context) error {
	i.Outcome.Replaced = i.Prepared.Over.From()
	return i.runner.FinishTakeOver(ctx, i.Prepared.Over)
}
