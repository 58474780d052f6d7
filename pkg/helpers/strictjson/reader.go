package strictjson

import (
	"errors"
	"fmt"
)

// MaxDepth is how deep objects and arrays may be nested.
const MaxDepth = 32

// Why a document is refused. Every error wraps one of these and says where.
var (
	// ErrSyntax: this is not JSON.
	ErrSyntax = errors.New("not valid JSON")
	// ErrDuplicate: an object has a name twice.
	ErrDuplicate = errors.New("a repeated member")
	// ErrType: the value is not of the kind that the caller reads.
	ErrType = errors.New("a value of another type")
	// ErrDepth: the nesting exceeds MaxDepth.
	ErrDepth = errors.New("nested too deep")
)

// Reader stands before a value of a document. Every method but Kind reads
// exactly one value.
type Reader struct {
	data  []byte
	at    int
	depth int
}

// Object reads data, which must be one object and nothing else. It calls member
// for every member in turn, which must read the value with one call to r. The
// name is good until then.
func Object(data []byte, member func(name []byte, r *Reader) error) error {
	r := &Reader{data: data}
	if err := r.Object(member); err != nil {
		return err
	}
	r.space()
	if r.at != len(r.data) {
		return r.fail(ErrSyntax)
	}
	return nil
}

// Kind is the first character of the value, which tells what it is: one of
// { [ " t f n for the kinds of JSON and 0 for a number or for no value at all.
func (r *Reader) Kind() byte {
	r.space()
	if r.at == len(r.data) {
		return 0
	}
	switch c := r.data[r.at]; c {
	case '{', '[', '"', 't', 'f', 'n':
		return c
	default:
		return 0
	}
}

// Object reads an object as the function Object does.
func (r *Reader) Object(member func(name []byte, r *Reader) error) error {
	if err := r.open('{'); err != nil {
		return err
	}
	var seen names
	for n := 0; ; n++ {
		more, err := r.next(n, '}')
		if err != nil {
			return err
		}
		if !more {
			break
		}
		start := r.at
		name, err := r.text()
		if err != nil {
			return err
		}
		if !seen.add(name) {
			r.at = start
			return fmt.Errorf("%w: %q", r.fail(ErrDuplicate), clip(name))
		}
		r.space()
		if !r.take(':') {
			return r.fail(ErrSyntax)
		}
		if err := member(name, r); err != nil {
			return err
		}
	}
	r.depth--
	return nil
}

// Array reads an array. It calls element for every element in turn, which must
// read it with one call to r.
func (r *Reader) Array(element func(r *Reader) error) error {
	if err := r.open('['); err != nil {
		return err
	}
	for n := 0; ; n++ {
		more, err := r.next(n, ']')
		if err != nil {
			return err
		}
		if !more {
			break
		}
		if err := element(r); err != nil {
			return err
		}
	}
	r.depth--
	return nil
}

// Skip reads a value of any kind, as strictly as if it were wanted.
func (r *Reader) Skip() error {
	switch r.Kind() {
	case '{':
		return r.Object(func(_ []byte, r *Reader) error { return r.Skip() })
	case '[':
		return r.Array((*Reader).Skip)
	case '"':
		_, err := r.text()
		return err
	case 't':
		return r.literal("true")
	case 'f':
		return r.literal("false")
	case 'n':
		return r.literal("null")
	default:
		_, err := r.number()
		return err
	}
}

func (r *Reader) literal(word string) error {
	if len(r.data)-r.at < len(word) || string(r.data[r.at:r.at+len(word)]) != word {
		return r.fail(ErrSyntax)
	}
	r.at += len(word)
	return nil
}

// open steps over the bracket that begins a value of the kind that is wanted.
func (r *Reader) open(bracket byte) error {
	if err := r.want(bracket); err != nil {
		return err
	}
	if r.depth == MaxDepth {
		return r.fail(ErrDepth)
	}
	r.depth++
	r.at++
	return nil
}

// next steps to the element that follows n others, or over the bracket that
// ends the object or array.
func (r *Reader) next(n int, bracket byte) (more bool, err error) {
	r.space()
	if r.take(bracket) {
		return false, nil
	}
	if n > 0 && !r.take(',') {
		return false, r.fail(ErrSyntax)
	}
	r.space()
	return true, nil
}

// want fails unless the next value begins with c: as a value of another type
// if there is any.
func (r *Reader) want(c byte) error {
	kind := r.Kind()
	switch {
	case kind == c:
		return nil
	case kind != 0 || r.atNumber():
		return r.fail(ErrType)
	default:
		return r.fail(ErrSyntax)
	}
}

func (r *Reader) atNumber() bool {
	return r.at < len(r.data) && (r.data[r.at] == '-' || digit(r.data[r.at]))
}

func (r *Reader) take(c byte) bool {
	if r.at == len(r.data) || r.data[r.at] != c {
		return false
	}
	r.at++
	return true
}

func (r *Reader) space() {
	for r.at < len(r.data) {
		switch r.data[r.at] {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return
		}
	}
}

func (r *Reader) fail(why error) error { return fmt.Errorf("%w at byte %d", why, r.at) }
