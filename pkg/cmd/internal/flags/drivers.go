package flags

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// DriverFlag is the flag that chooses registration drivers.
const DriverFlag = "registration-auth"

// Drivers are the flags that every registration driver has at one command.
type Drivers[F adder] []*OfDriver[F]

type adder interface{ AddTo(flags *pflag.FlagSet) }

// OfDriver are the flags of one driver.
type OfDriver[F adder] struct {
	driver.Setup

	// Flags are what the driver defines.
	Flags F

	names []string
	set   *pflag.FlagSet
}

// InitDrivers returns the flags of init.
func InitDrivers(c driver.Catalog) Drivers[driver.InitFlags] {
	return newDrivers(c, driver.Setup.InitFlags)
}

// JoinDrivers returns the flags of join.
func JoinDrivers(c driver.Catalog) Drivers[driver.JoinFlags] {
	return newDrivers(c, driver.Setup.JoinFlags)
}

// AcceptDrivers returns the flags of accept.
func AcceptDrivers(c driver.Catalog) Drivers[driver.AcceptFlags] {
	return newDrivers(c, driver.Setup.AcceptFlags)
}

func newDrivers[F adder](c driver.Catalog, flags func(driver.Setup) F) Drivers[F] {
	all := make(Drivers[F], len(c))
	for i, setup := range c {
		all[i] = &OfDriver[F]{Setup: setup, Flags: flags(setup)}
	}
	return all
}

// AddTo registers the flags of every driver, with their other names and completions.
func (d Drivers[F]) AddTo(cmd *cobra.Command) {
	for _, of := range d {
		own := pflag.NewFlagSet("", pflag.ContinueOnError)
		of.Flags.AddTo(own)
		own.VisitAll(func(flag *pflag.Flag) {
			of.names = append(of.names, flag.Name)
			for _, alias := range flag.Annotations[driver.FlagAlias] {
				cli.AliasFlag(cmd, alias, flag.Name)
			}
		})
		cmd.Flags().AddFlagSet(own)
		own.VisitAll(func(flag *pflag.Flag) {
			if choices := flag.Annotations[driver.FlagChoices]; len(choices) > 0 {
				_ = cmd.RegisterFlagCompletionFunc(flag.Name, cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp))
			}
		})
		of.set = cmd.Flags()
	}
}

// Given returns the flags of the driver that were given, as users write them.
func (d *OfDriver[F]) Given() []string {
	var given []string
	for _, name := range d.names {
		if d.set.Changed(name) {
			given = append(given, "--"+name)
		}
	}
	return given
}

// Of returns the flags of one driver, nil if there is no such driver.
func (d Drivers[F]) Of(kind driver.AuthType) *OfDriver[F] {
	i := slices.IndexFunc(d, func(of *OfDriver[F]) bool { return of.Type() == kind })
	if i < 0 {
		return nil
	}
	return d[i]
}

// DriverEnum returns the value of a flag that chooses a driver.
func DriverEnum(target *driver.AuthType, c driver.Catalog) *cli.Enum[driver.AuthType] {
	types, aliases := choices(c)
	return cli.NewEnum(target, aliases, types...).Without("grpc", NoGRPC)
}

// DriverEnums returns the value of a flag that chooses drivers.
func DriverEnums(target *[]driver.AuthType, c driver.Catalog) *cli.EnumSlice[driver.AuthType] {
	types, aliases := choices(c)
	return cli.NewEnumSlice(target, aliases, types...).Without("grpc", NoGRPC)
}

func choices(c driver.Catalog) (types []driver.AuthType, aliases map[string]driver.AuthType) {
	aliases = map[string]driver.AuthType{}
	for _, setup := range c {
		types = append(types, setup.Type())
		for _, alias := range setup.Aliases() {
			aliases[alias] = setup.Type()
		}
	}
	return types, aliases
}

// Ask returns the questions of a driver about what no flag gave.
func Ask(questions []driver.Question) []cli.Question {
	asked := make([]cli.Question, len(questions))
	for i, q := range questions {
		asked[i] = cli.Question{Flag: q.Flag, Text: q.Text, Answer: q.Answer}
	}
	return asked
}

// Help returns a part of the help of every driver that has one, each behind an empty line.
func Help(c driver.Catalog, part func(driver.Help) string) string {
	var text strings.Builder
	for _, by := range c.Identifiers() {
		if said := part(by.Help()); said != "" {
			text.WriteString("\n\n" + said)
		}
	}
	return text.String()
}
