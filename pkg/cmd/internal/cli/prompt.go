package cli

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/AlecAivazis/survey/v2"
	"github.com/AlecAivazis/survey/v2/terminal"
	"github.com/spf13/pflag"
)

// Question is a value that no flag gave.
type Question struct {
	// Flag would have given it.
	Flag string
	Text string
	// Initial is the answer that a person only confirms.
	Initial string
	// Secret answers are not shown.
	Secret bool
	// Optional says that an empty answer, or none, is one as well.
	Optional bool
	// Answer is where the answer goes.
	Answer *string
}

// Ask asks for what no flag gave. Without a terminal, all flags that are missing
// are named in one usage error.
func (e Env) Ask(questions ...Question) error {
	opts, ok := e.survey()
	if !ok {
		return missing(questions)
	}
	for _, q := range questions {
		var prompt survey.Prompt = &survey.Input{Message: q.Text, Default: q.Initial}
		if q.Secret {
			prompt = &survey.Password{Message: q.Text}
		}
		if !q.Secret && !e.animated() {
			if err := e.plainly(q); err != nil {
				return err
			}
			continue
		}
		if err := survey.AskOne(prompt, q.Answer, opts...); err != nil {
			return interrupted(err)
		}
	}
	return nil
}

// plainly asks on a terminal that can only print.
func (e Env) plainly(q Question) error {
	initial := ""
	if q.Initial != "" {
		initial = " (" + q.Initial + ")"
	}
	_, _ = fmt.Fprint(e.ErrOut, q.Text+initial+" ")
	line, err := bufio.NewReader(e.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("prompt: %w", err)
	}
	*q.Answer = cmp.Or(strings.TrimSpace(line), q.Initial)
	return nil
}

func missing(questions []Question) error {
	var flags []string
	for _, q := range questions {
		if !q.Optional {
			flags = append(flags, "--"+q.Flag)
		}
	}
	switch last := len(flags) - 1; {
	case last < 0:
		return nil
	case last == 0:
		return Usagef("%s is missing", flags[0])
	default:
		return Usagef("%s and %s are missing", strings.Join(flags[:last], ", "), flags[last])
	}
}

// Yes is the value of --yes.
type Yes bool

// AddYesFlag registers the flag of a command that calls Confirm.
func AddYesFlag(flags *pflag.FlagSet, yes *Yes) {
	flags.BoolVarP((*bool)(yes), "yes", "y", false, "do not ask for confirmation; required without a terminal")
}

// Confirm asks before something is lost; yes is what AddYesFlag has read. An
// answer other than yes is an error, and so is a run without a terminal and
// without the flag: a script that reached a wrong cluster must not destroy it.
// A dry run loses nothing, and scripts for clusteradm know neither the question
// nor the flag, so these are not asked.
func (e Env) Confirm(yes Yes, question string) error {
	if bool(yes) || e.Kube.DryRun() != DryRunNone || e.Name == Clusteradm {
		return nil
	}
	opts, ok := e.survey()
	if !ok {
		return &Explained{Problem: "this needs a confirmation: " + question, Try: "confirm it with --yes", Code: CodeUsage}
	}
	answer, err := e.confirmed(question, opts)
	if err == nil && !answer {
		return Blockedf("", "not confirmed; nothing was changed")
	}
	return interrupted(err)
}

// confirmed asks on a terminal.
func (e Env) confirmed(question string, opts []survey.AskOpt) (yes bool, err error) {
	if e.animated() {
		err = survey.AskOne(&survey.Confirm{Message: question}, &yes, opts...)
		return yes, err
	}
	var text string
	err = e.plainly(Question{Text: question + " (y/N)", Answer: &text})
	return slices.Contains([]string{"y", "yes"}, strings.ToLower(text)), err
}

func (e Env) survey() ([]survey.AskOpt, bool) {
	if !e.Interactive() {
		return nil, false
	}
	in, inOK := e.In.(*os.File)
	out, outOK := e.ErrOut.(*os.File)
	return []survey.AskOpt{survey.WithStdio(in, out, out)}, inOK && outOK
}

func interrupted(err error) error {
	if errors.Is(err, terminal.InterruptErr) {
		return &Explained{Problem: "interrupted", Code: CodeInterrupted}
	}
	if err != nil {
		return fmt.Errorf("prompt: %w", err)
	}
	return nil
}
