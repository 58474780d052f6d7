package cli

import (
	"strings"
	"unicode"
)

// Command is a command line of ours, for messages: the name that the user typed,
// the arguments, and the connection flags that the user gave.
func (e Env) Command(args ...string) string { return e.CommandAt(Context{}, args...) }

// CommandAt is Command for another cluster; an empty Context is the one that the
// flags choose.
func (e Env) CommandAt(other Context, args ...string) string {
	return e.line(e.Name, args, other)
}

// Elsewhere is a command line of ours for a cluster that the user has not named:
// the connection flags of this call belong to another one.
func (e Env) Elsewhere(args ...string) string { return line(e.Name, args) }

// Kubectl is a command line of kubectl for the cluster that the flags choose.
func (e Env) Kubectl(args ...string) string { return e.line("kubectl", args, Context{}) }

func (e Env) line(program string, args []string, other Context) string {
	if other == (Context{}) && e.Kube != nil {
		other = e.Kube.chosen()
	}
	return line(program, other.add(args...))
}

// add returns args with the flags that choose the cluster.
func (c Context) add(args ...string) []string {
	for _, flag := range [][2]string{{"--kubeconfig", c.Kubeconfig}, {"--context", c.Name}} {
		if flag[1] != "" {
			args = append(args, flag[0], Quoted(flag[1]))
		}
	}
	return args
}

func line(program string, args []string) string {
	return strings.Join(append([]string{program}, args...), " ")
}

// Quoted makes a word safe for a shell where it is not.
func Quoted(word string) string {
	if strings.IndexFunc(word, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.,:/@+=%", r)
	}) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
