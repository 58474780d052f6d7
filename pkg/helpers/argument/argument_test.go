package argument_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag" //nolint:depguard // The components read their flags with it.

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/argument"
)

// TestFlagsReadWhatWasWritten reads the values as the components do.
func TestFlagsReadWhatWasWritten(t *testing.T) {
	t.Parallel()
	users := []string{"alice", "cn=bob,ou=fleet", `say "hi"`}
	annotations := map[string]string{"a": "1", "b": "x,y", "c": "x=1,y=2", "d": `{"k":"v=w"}`, "e": "MTIz=="}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	gotUsers := flags.StringSlice("users", nil, "")
	gotAnnotations := flags.StringToString("annotations", nil, "")
	args := []string{"--users=" + argument.List(users...)}
	for key, value := range annotations {
		args = append(args, "--annotations="+argument.Pair(key, value))
	}
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(users, *gotUsers); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(annotations, *gotAnnotations); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
