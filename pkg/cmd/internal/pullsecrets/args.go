package pullsecrets

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// Args are the arguments of a controller with these flags: those that were set.
func (f *Flags) Args() []string {
	var args []string
	for _, flag := range f.own {
		if flag.Changed {
			args = append(args, arguments(flag)...)
		}
	}
	return args
}

// arguments set a flag to its value: one for each item of a list.
func arguments(flag *pflag.Flag) []string {
	list, ok := flag.Value.(pflag.SliceValue)
	if !ok {
		return []string{"--" + flag.Name + "=" + flag.Value.String()}
	}
	var args []string
	for _, item := range list.GetSlice() {
		args = append(args, "--"+flag.Name+"="+item)
	}
	return args
}

// Keep sets the flags that were not set to what a controller's arguments say.
// Arguments that are not of these flags are left out.
func (f *Flags) Keep(args []string) error {
	unset := map[string]bool{}
	for _, flag := range f.own {
		unset[flag.Name] = !flag.Changed
	}
	for _, arg := range args {
		name, value, ok := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if !ok || !unset[name] {
			continue
		}
		if err := f.set.Set(name, value); err != nil {
			return fmt.Errorf("the installed controller's argument %s: %w", arg, err)
		}
	}
	return nil
}
