// Command typecheck checks the types of packages and of all that they import, for the
// platform in GOOS and GOARCH. Compiling for another platform takes twenty times as long;
// make release does it.
package main

import (
	"fmt"
	"os"

	"golang.org/x/tools/go/packages"
)

func main() {
	// With NeedDeps types are read from the source and not from what the compiler writes.
	mode := packages.NeedName | packages.NeedImports | packages.NeedDeps | packages.NeedFiles | packages.NeedCompiledGoFiles |
		packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo
	loaded, err := packages.Load(&packages.Config{Mode: mode, Tests: true}, os.Args[1:]...) //nolint:forbidigo // It is a command.
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:forbidigo // See above.
	}
	if packages.PrintErrors(loaded) > 0 {
		os.Exit(1) //nolint:forbidigo // See above.
	}
}
