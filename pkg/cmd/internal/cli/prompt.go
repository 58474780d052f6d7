package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/AlecAivazis/survey/v2"
	"github.com/AlecAivazis/survey/v2/terminal"
)

// Ask asks for a value that no flag gave. Where nobody can be asked, the flag
// is named in a usage error.
func (e Env) Ask(flag, question, initial string) (string, error) {
	opts, ok := e.survey()
	if !ok {
		return "", Usagef("--%s is missing", flag)
	}
	var answer string
	err := survey.AskOne(&survey.Input{Message: question, Default: initial}, &answer, opts...)
	return answer, interrupted(err)
}

// AskSecret is Ask for a value that must not be shown.
func (e Env) AskSecret(flag, question string) (string, error) {
	opts, ok := e.survey()
	if !ok {
		return "", Usagef("--%s is missing", flag)
	}
	var answer string
	err := survey.AskOne(&survey.Password{Message: question}, &answer, opts...)
	return answer, interrupted(err)
}

// Confirm asks before something is destroyed. Where nobody can be asked the
// answer is yes: a script meant what it wrote.
func (e Env) Confirm(question string) (bool, error) {
	opts, ok := e.survey()
	if !ok {
		return true, nil
	}
	var answer bool
	err := survey.AskOne(&survey.Confirm{Message: question}, &answer, opts...)
	return answer, interrupted(err)
}

func (e Env) survey() ([]survey.AskOpt, bool) {
	if !e.Interactive() {
		return nil, false
	}
	in, inOK := e.In.(*os.File)
	out, outOK := e.Err.(*os.File)
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
