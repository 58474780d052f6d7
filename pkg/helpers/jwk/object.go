package jwk

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	kjson "sigs.k8s.io/json"
)

// maxDepth is how deep objects and arrays may be nested.
const maxDepth = 32

var (
	errJSON     = errors.New("not a JSON object")
	errRepeated = errors.New("a repeated member")
)

// Object decodes one JSON object in which nothing can be hidden from another
// reader: names are compared exactly and no object, however deep, has one twice.
func Object(data []byte) (map[string]any, error) {
	if err := scan(data); err != nil {
		return nil, err
	}
	var object map[string]any
	repeated, err := kjson.UnmarshalStrict(data, &object)
	switch {
	case err != nil || object == nil:
		return nil, errJSON
	case len(repeated) > 0:
		return nil, fmt.Errorf("%w: %s", errRepeated, fmt.Sprintf("%.100s", repeated[0].Error()))
	}
	return object, nil
}

// scan rejects what decoders replace silently, which is invalid UTF-8 and half
// surrogate pairs, and nesting that no key set or token needs.
func scan(data []byte) error {
	if !utf8.Valid(data) {
		return fmt.Errorf("%w: invalid UTF-8", errJSON)
	}
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			length, ok := escape(data[i:])
			if !ok {
				return fmt.Errorf("%w: half a surrogate pair", errJSON)
			}
			i += length - 1
		case c == '"':
			quoted = !quoted
		case quoted:
		case strings.IndexByte("{[", c) >= 0:
			depth++
		case strings.IndexByte("}]", c) >= 0:
			depth--
		}
		if depth > maxDepth {
			return fmt.Errorf("%w: nested too deep", errJSON)
		}
	}
	return nil
}

// escape returns how much to skip of the escape that data begins with. It is not
// ok if that is half a surrogate pair (RFC 8259 §8.2).
func escape(data []byte) (length int, ok bool) {
	first := codeUnit(data)
	if !utf16.IsSurrogate(first) {
		return len(`\"`), true
	}
	return len(`\ud83d\ude00`), utf16.DecodeRune(first, codeUnit(data[len(`\ud83d`):])) != unicode.ReplacementChar
}

// codeUnit returns the UTF-16 code unit that data begins with, or -1.
func codeUnit(data []byte) rune {
	if len(data) < len(`\ud83d`) || data[0] != '\\' || data[1] != 'u' {
		return -1
	}
	unit, err := strconv.ParseUint(string(data[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(unit)
}
