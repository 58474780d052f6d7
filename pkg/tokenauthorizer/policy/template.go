package policy

import (
	"fmt"
	"slices"
	"strings"
)

// variable is a placeholder of a template.
type variable byte

const (
	literal variable = iota
	clusterVar
	namespaceVar
	nameVar
)

// part is a literal text or a variable.
type part struct {
	text string
	is   variable
}

// template is a parsed template. Literals that adjoin are one part.
type template []part

// parseTemplate reads a template. With a known cluster, {cluster} is a literal.
func parseTemplate(text, cluster string) (template, error) {
	var t template
	for rest := text; rest != ""; {
		open := strings.IndexAny(rest, "{}")
		if open < 0 {
			return t.literal(rest), nil
		}
		t = t.literal(rest[:open])
		end := strings.IndexByte(rest, '}')
		if rest[open] == '}' || end < 0 {
			return nil, fmt.Errorf("%q has a brace without its partner", text)
		}
		switch placeholder := rest[open : end+1]; placeholder {
		case "{cluster}":
			if cluster != AnyCluster {
				t = t.literal(cluster)
				break
			}
			t = append(t, part{is: clusterVar})
		case "{namespace}":
			t = append(t, part{is: namespaceVar})
		case "{name}":
			t = append(t, part{is: nameVar})
		default:
			return nil, fmt.Errorf("%q uses %s; a template knows {cluster}, {namespace} and {name}", text, placeholder)
		}
		rest = rest[end+1:]
	}
	return t, nil
}

func (t template) literal(text string) template {
	if text == "" {
		return t
	}
	if n := len(t); n > 0 && t[n-1].is == literal {
		t[n-1].text += text
		return t
	}
	return append(t, part{text: text})
}

// fixed returns the text of a template without variables, "" for one with.
func (t template) fixed() string {
	if len(t) == 1 && t[0].is == literal {
		return t[0].text
	}
	return ""
}

func (t template) uses(v variable) bool {
	return slices.ContainsFunc(t, func(p part) bool { return p.is == v })
}

// source contains the values of the variables.
type source struct{ cluster, namespace, name string }

func (s source) value(p part) string {
	switch p.is {
	case clusterVar:
		return s.cluster
	case namespaceVar:
		return s.namespace
	case nameVar:
		return s.name
	default:
		return p.text
	}
}

// render allocates once, and not at all for a single part.
func (t template) render(s source) string {
	if len(t) == 1 {
		return s.value(t[0])
	}
	size := 0
	for _, p := range t {
		size += len(s.value(p))
	}
	var b strings.Builder
	b.Grow(size)
	for _, p := range t {
		b.WriteString(s.value(p))
	}
	return b.String()
}

// ambiguous reports whether different sources can render to the same text. A
// namespace and a cluster have no dot, so one separates them for certain; any
// other character may be a part of both neighbours ("a-b"+"c" and "a"+"b-c"). A
// name has dots of its own, so with two of them it is not known which dot is
// whose.
func (t template) ambiguous() bool {
	names, after := 0, false // after a variable, with no dot since
	for _, p := range t {
		switch {
		case p.is == literal:
			after = after && !strings.Contains(p.text, ".")
			continue
		case after:
			return true
		case p.is == nameVar:
			names++
		}
		after = true
	}
	return names > 1
}
