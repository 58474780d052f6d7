package strategy

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/itchyny/gojq"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// jqTimeout bounds an expression, in addition to what expressions may be.
const jqTimeout = time.Second

// errNoSelection is why an expression is refused. The work's author is not trusted with
// jq's functions: with them an expression could make an object up.
var errNoSelection = errors.New(`it does more than select fields; use field names, [], [NUMBER] and select(.name == "VALUE"), as in .spec.containers[] | select(.name == "app") | .image`)

// removeJQ removes what a jq path expression selects.
func removeJQ(ctx context.Context, object *unstructured.Unstructured, expression string) error {
	query, err := gojq.Parse(expression)
	if err != nil {
		return err
	}
	if !selects(query) {
		return errNoSelection
	}
	code, err := gojq.Compile(deletion(query))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, jqTimeout)
	defer cancel()
	result, ok := code.RunWithContext(ctx, forJQ(object.Object)).Next()
	if err, failed := result.(error); failed {
		return err
	}
	if !ok {
		return errNoSelection
	}
	reduced, err := json.Marshal(result)
	if err != nil {
		return err
	}
	return object.UnmarshalJSON(reduced)
}

// deletion returns delpaths([path(selection)]). The selection is a part of the syntax
// tree and not of a text, which it could end.
func deletion(selection *gojq.Query) *gojq.Query {
	call := func(name string, argument *gojq.Query) *gojq.Query {
		return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: name, Args: []*gojq.Query{argument}}}}
	}
	paths := &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeArray, Array: &gojq.Array{Query: call("path", selection)}}}
	return call("delpaths", paths)
}

// selects reports whether a query selects parts of its input and can do nothing else. It
// allows fields, elements, iteration, and selections by literals, one after another, so
// that each of them visits a part of the input at most once.
func selects(q *gojq.Query) bool {
	switch {
	case !plain(q):
		return false
	case q.Op == gojq.OpPipe:
		return selects(q.Left) && selects(q.Right)
	}
	return q.Term != nil && (pathTerm(q.Term) || selection(q.Term))
}

// plain reports whether a query defines and imports nothing.
func plain(q *gojq.Query) bool {
	return q != nil && q.Meta == nil && len(q.Imports) == 0 && len(q.FuncDefs) == 0 && len(q.Patterns) == 0
}

// pathTerm reports whether a term is a path such as .spec.containers[0].image.
func pathTerm(t *gojq.Term) bool {
	switch t.Type {
	case gojq.TermTypeIdentity:
	case gojq.TermTypeIndex:
		if !literalIndex(t.Index) {
			return false
		}
	default:
		return false
	}
	return suffixes(t.SuffixList)
}

func suffixes(list []*gojq.Suffix) bool {
	return !slices.ContainsFunc(list, func(s *gojq.Suffix) bool { return s.Index != nil && !literalIndex(s.Index) })
}

func iterates(t *gojq.Term) bool {
	return slices.ContainsFunc(t.SuffixList, func(s *gojq.Suffix) bool { return s.Iter })
}

// literalIndex reports whether an index is a name or a number, and nothing computed.
func literalIndex(i *gojq.Index) bool {
	switch {
	case i.IsSlice || i.End != nil:
		return false
	case i.Start != nil:
		return literal(i.Start)
	}
	return i.Str == nil || len(i.Str.Queries) == 0
}

// selection reports whether a term is select(CONDITION).
func selection(t *gojq.Term) bool {
	return t.Type == gojq.TermTypeFunc && t.Func.Name == "select" && len(t.Func.Args) == 1 &&
		condition(t.Func.Args[0]) && suffixes(t.SuffixList)
}

// condition reports whether a query compares paths with literals, and has one result: with
// several, select would have its input as often.
func condition(q *gojq.Query) bool {
	if !plain(q) {
		return false
	}
	switch q.Op {
	case gojq.OpAnd, gojq.OpOr:
		return condition(q.Left) && condition(q.Right)
	case gojq.OpEq, gojq.OpNe:
		return plain(q.Left) && q.Left.Term != nil && pathTerm(q.Left.Term) && !iterates(q.Left.Term) && literal(q.Right)
	default:
		return false
	}
}

// literal reports whether a query is a string, a number, true, false or null.
func literal(q *gojq.Query) bool {
	if !plain(q) || q.Term == nil || len(q.Term.SuffixList) > 0 {
		return false
	}
	switch q.Term.Type {
	case gojq.TermTypeNumber, gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeNull:
		return true
	case gojq.TermTypeString:
		return len(q.Term.Str.Queries) == 0
	default:
		return false
	}
}

// forJQ returns a copy of a value in the types that gojq knows.
func forJQ(value any) any {
	switch value := value.(type) {
	case map[string]any:
		c := make(map[string]any, len(value))
		for key, below := range value {
			c[key] = forJQ(below)
		}
		return c
	case []any:
		c := make([]any, len(value))
		for i, below := range value {
			c[i] = forJQ(below)
		}
		return c
	case int64:
		return int(value)
	}
	return value
}
