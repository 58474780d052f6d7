package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
)

// source is a parsed Go file and what was found in it.
type source struct {
	*glossary
	file  string
	lines *token.FileSet
	found []finding
}

// inSource finds words in the strings, the comments and the declared names of Go.
func (g *glossary) inSource(file string, data []byte) ([]finding, error) {
	s := &source{glossary: g, file: file, lines: token.NewFileSet()}
	tree, err := parser.ParseFile(s.lines, file, data, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	s.name(tree.Name)
	for _, declaration := range tree.Decls {
		s.values(declaration)
	}
	ast.Inspect(tree, s.visit)
	if !strings.HasSuffix(file, "_test.go") {
		for _, group := range tree.Comments {
			s.text(group.Pos(), "a comment", group.Text())
		}
	}
	return s.found, nil
}

// visit looks at the names that others can meet, which those of a function's own
// variables are not.
func (s *source) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ImportSpec:
		return false
	case *ast.FuncDecl:
		s.name(n.Name)
	case *ast.TypeSpec:
		s.name(n.Name)
	case *ast.StructType:
		s.members(n.Fields)
	case *ast.InterfaceType:
		s.members(n.Methods)
	case *ast.BasicLit:
		s.literal(n)
	}
	return true
}

// values looks at the constants and variables of the package.
func (s *source) values(declaration ast.Decl) {
	general, ok := declaration.(*ast.GenDecl)
	if !ok {
		return
	}
	for _, spec := range general.Specs {
		if value, ok := spec.(*ast.ValueSpec); ok {
			s.name(value.Names...)
		}
	}
}

func (s *source) members(list *ast.FieldList) {
	for _, field := range list.List {
		s.name(field.Names...)
		field.Tag = nil // Keys of JSON are the wire's.
	}
}

func (s *source) name(names ...*ast.Ident) {
	for _, n := range names {
		s.found = append(s.found, s.inNames(s.file, s.line(n.Pos()), "a name", n.Name)...)
	}
}

func (s *source) literal(lit *ast.BasicLit) {
	if lit.Kind != token.STRING || strings.HasSuffix(s.file, "_test.go") {
		return
	}
	if text, err := strconv.Unquote(lit.Value); err == nil {
		s.text(lit.Pos(), "a string", text)
	}
}

func (s *source) text(pos token.Pos, where, text string) {
	s.found = append(s.found, s.inText(s.file, s.line(pos), where, text)...)
}

func (s *source) line(pos token.Pos) int { return s.lines.Position(pos).Line }
