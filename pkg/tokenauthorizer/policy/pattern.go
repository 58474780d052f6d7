package policy

import (
	"slices"
	"strings"
)

// everything is the pattern that matches everything.
const everything = "*"

// globs is a list of patterns, precompiled. The zero value matches everything.
type globs struct {
	written []string
	exact   []string
	wild    []glob
}

// glob is a pattern with at least one star, cut at its stars.
type glob []string

func compileGlobs(patterns []string) globs {
	g := globs{written: patterns}
	for _, p := range patterns {
		if onlyStars(p) && p != "" {
			return globs{written: patterns}
		}
		if strings.Contains(p, "*") {
			g.wild = append(g.wild, strings.Split(p, "*"))
			continue
		}
		g.exact = append(g.exact, p)
	}
	return g
}

// unbounded reports whether g matches everything.
func (g globs) unbounded() bool { return len(g.exact) == 0 && len(g.wild) == 0 }

// single reports whether g matches exactly one name.
func (g globs) single() bool { return len(g.exact) == 1 && len(g.wild) == 0 }

func (g globs) match(s string) bool {
	if g.unbounded() || slices.Contains(g.exact, s) {
		return true
	}
	for _, w := range g.wild {
		if w.match(s) {
			return true
		}
	}
	return false
}

func (w glob) match(s string) bool {
	last := len(w) - 1
	if len(s) < len(w[0])+len(w[last]) || !strings.HasPrefix(s, w[0]) || !strings.HasSuffix(s, w[last]) {
		return false
	}
	s = s[len(w[0]) : len(s)-len(w[last])]
	for _, piece := range w[1:last] {
		i := strings.Index(s, piece)
		if i < 0 {
			return false
		}
		s = s[i+len(piece):]
	}
	return true
}

// patterns returns what g matches as patterns, "*" for everything.
func (g globs) patterns() []string {
	if g.unbounded() {
		return []string{everything}
	}
	return g.written
}

// overlap reports whether some name matches both patterns.
func overlap(a, b string) bool {
	switch {
	case !wild(a) && !wild(b):
		return a == b
	case !sameHead(a, b): // So do most patterns differ.
		return false
	}
	// meet[j] reports whether the rest of a has a name in common with b[j:].
	meet := make([]bool, len(b)+1)
	for j := range meet {
		meet[j] = onlyStars(b[j:])
	}
	for i := len(a) - 1; i >= 0; i-- {
		next := make([]bool, len(b)+1)
		next[len(b)] = onlyStars(a[i:])
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == '*' || b[j] == '*' {
				// A star stands for nothing, or for the other's next character.
				next[j] = meet[j] || next[j+1]
				continue
			}
			next[j] = a[i] == b[j] && meet[j+1]
		}
		meet = next
	}
	return meet[0]
}

// sameHead reports whether both are the same up to the first star.
func sameHead(a, b string) bool {
	for i := range min(len(a), len(b)) {
		if a[i] == '*' || b[i] == '*' {
			return true
		}
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func onlyStars(pattern string) bool { return strings.Trim(pattern, everything) == "" }

// overlapAny reports whether some name matches a pattern of both lists.
func overlapAny(a, b []string) bool {
	return slices.ContainsFunc(a, func(x string) bool {
		return slices.ContainsFunc(b, func(y string) bool { return overlap(x, y) })
	})
}

// covers reports whether every name that g matches is matched by wide too. It
// may say no where the answer is yes, never the other way.
func covers(wide, g globs) bool {
	// A star matches a star as any other character does.
	return !slices.ContainsFunc(g.patterns(), func(p string) bool { return !wide.match(p) })
}

func wild(pattern string) bool { return strings.Contains(pattern, everything) }
