//go:build linux

package cmd_test

import (
	"go/ast"
	"go/types"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// printedTypes are the types that a package prints as JSON: arguments of
// Output.Object, and the items of each cli.Kind.
func printedTypes(p *packages.Package) []types.Type {
	ours := func(name *ast.Ident, called string) bool {
		object := p.TypesInfo.Uses[name]
		return object != nil && object.Name() == called && object.Pkg() != nil && strings.HasSuffix(object.Pkg().Path(), "/pkg/cmd/internal/cli")
	}
	var out []types.Type
	for _, file := range p.Syntax {
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if name := calledName(call.Fun); name != nil && ours(name, "Object") {
					out = append(out, p.TypesInfo.TypeOf(call.Args[2]))
				}
			}
			return true
		})
	}
	for name, instance := range p.TypesInfo.Instances {
		if ours(name, "Kind") {
			out = append(out, types.Unalias(instance.TypeArgs.At(0)))
		}
	}
	// The type parameter of a generic function is printed by those that call it.
	return slices.DeleteFunc(out, generic)
}

// generic reports whether a type is, or has as argument, a type parameter.
func generic(t types.Type) bool {
	if named, ok := t.(*types.Named); ok && named.TypeArgs().Len() > 0 {
		t = named.TypeArgs().At(0)
	}
	_, is := t.(*types.TypeParam)
	return is
}

func calledName(fun ast.Expr) *ast.Ident {
	switch f := fun.(type) {
	case *ast.Ident:
		return f
	case *ast.SelectorExpr:
		return f.Sel
	case *ast.IndexExpr:
		return calledName(f.X)
	}
	return nil
}

// typeName is a type without the path of the module.
func typeName(t types.Type) string {
	if pointer, ok := t.(*types.Pointer); ok {
		t = pointer.Elem()
	}
	return types.TypeString(t, func(p *types.Package) string {
		return strings.TrimPrefix(p.Path(), "github.com/kubectl-ocm/kubectl-ocm/pkg/")
	})
}

// keys are the paths of the fields that encoding/json writes for t. Fields of types of
// other modules are theirs to keep.
func keys(prefix string, t types.Type, above []types.Type) []string {
	switch u := t.(type) {
	case *types.Pointer:
		return keys(prefix, u.Elem(), above)
	case *types.Slice:
		return keys(prefix+"[]", u.Elem(), above)
	case *types.Map:
		return keys(prefix+"{}", u.Elem(), above)
	case *types.Named:
		if !strings.Contains(u.Obj().Pkg().Path(), "kubectl-ocm") || slices.Contains(above, t) {
			return []string{prefix + " " + typeName(t)}
		}
		above = append(above, t)
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok {
		return []string{prefix + " " + t.Underlying().String()}
	}
	var out []string
	for i := range s.NumFields() {
		key, _, _ := strings.Cut(reflect.StructTag(s.Tag(i)).Get("json"), ",")
		switch field := s.Field(i); {
		case key == "-" || !field.Exported():
		case key == "" && field.Embedded():
			out = append(out, keys(prefix, field.Type(), above)...)
		default:
			out = append(out, keys(prefix+"."+key, field.Type(), above)...)
		}
	}
	return out
}
