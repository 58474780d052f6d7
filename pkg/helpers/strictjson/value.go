package strictjson

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// String reads a string.
func (r *Reader) String() (string, error) {
	if err := r.want('"'); err != nil {
		return "", err
	}
	text, err := r.text()
	return string(text), err
}

// Number reads a number. One beyond what a float64 holds is a syntax error.
func (r *Reader) Number() (float64, error) {
	r.space()
	if !r.atNumber() {
		return 0, r.want('0')
	}
	text, err := r.number()
	if err != nil {
		return 0, err
	}
	value, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return 0, r.fail(ErrSyntax)
	}
	return value, nil
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// number reads the grammar of RFC 8259 §6.
func (r *Reader) number() ([]byte, error) {
	start := r.at
	r.take('-')
	if !r.take('0') && !r.digits() {
		return nil, r.fail(ErrSyntax)
	}
	if r.take('.') && !r.digits() {
		return nil, r.fail(ErrSyntax)
	}
	if r.take('e') || r.take('E') {
		if !r.take('+') {
			r.take('-')
		}
		if !r.digits() {
			return nil, r.fail(ErrSyntax)
		}
	}
	return r.data[start:r.at], nil
}

func (r *Reader) digits() bool {
	start := r.at
	for r.at < len(r.data) && digit(r.data[r.at]) {
		r.at++
	}
	return r.at > start
}

// text reads a string; most have no escape and are not copied.
func (r *Reader) text() ([]byte, error) {
	if !r.take('"') {
		return nil, r.fail(ErrSyntax)
	}
	start := r.at
	for r.at < len(r.data) {
		switch c := r.data[r.at]; {
		case c == '"':
			text := r.data[start:r.at]
			r.at++
			return text, nil
		case c == '\\':
			return r.escaped(start)
		case c < ' ':
			return nil, r.fail(ErrSyntax)
		case c < utf8.RuneSelf:
			r.at++
		default:
			if err := r.rune(); err != nil {
				return nil, err
			}
		}
	}
	return nil, r.fail(ErrSyntax)
}

// escaped reads the rest of a string that began at start, from its first escape on.
func (r *Reader) escaped(start int) ([]byte, error) {
	text := bytes.Clone(r.data[start:r.at])
	for r.at < len(r.data) {
		switch c := r.data[r.at]; {
		case c == '"':
			r.at++
			return text, nil
		case c == '\\':
			r.at++
			decoded, err := r.escape()
			if err != nil {
				return nil, err
			}
			text = utf8.AppendRune(text, decoded)
		case c < ' ':
			return nil, r.fail(ErrSyntax)
		default:
			from := r.at
			if err := r.rune(); err != nil {
				return nil, err
			}
			text = append(text, r.data[from:r.at]...)
		}
	}
	return nil, r.fail(ErrSyntax)
}

func (r *Reader) rune() error {
	decoded, size := utf8.DecodeRune(r.data[r.at:])
	if decoded == utf8.RuneError && size == 1 {
		return r.fail(ErrSyntax)
	}
	r.at += size
	return nil
}

// escape reads what follows a backslash.
func (r *Reader) escape() (rune, error) {
	if r.at == len(r.data) {
		return 0, r.fail(ErrSyntax)
	}
	c := r.data[r.at]
	r.at++
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
		return r.unicode()
	default:
		return 0, r.fail(ErrSyntax)
	}
}

// unicode reads the digits of \uXXXX, and the second half of a surrogate pair.
func (r *Reader) unicode() (rune, error) {
	first, err := r.hex()
	if err != nil || !utf16.IsSurrogate(first) {
		return first, err
	}
	if !r.take('\\') || !r.take('u') {
		return 0, r.fail(ErrSyntax)
	}
	second, err := r.hex()
	if err != nil {
		return 0, err
	}
	decoded := utf16.DecodeRune(first, second)
	if decoded == utf8.RuneError {
		return 0, r.fail(ErrSyntax)
	}
	return decoded, nil
}

func (r *Reader) hex() (rune, error) {
	const size = 4
	if len(r.data)-r.at < size {
		return 0, r.fail(ErrSyntax)
	}
	value, err := strconv.ParseUint(string(r.data[r.at:r.at+size]), 16, 16)
	if err != nil {
		return 0, r.fail(ErrSyntax)
	}
	r.at += size
	return rune(value), nil
}
