package strictjson

import "bytes"

// few is how many names are compared one by one; objects with more get a map,
// so that a hostile one costs no more than its length.
const few = 16

// names are the names of an object so far.
type names struct {
	list [few][]byte
	n    int
	rest map[string]struct{}
}

// add reports whether name is new.
func (s *names) add(name []byte) bool {
	for _, seen := range s.list[:s.n] {
		if bytes.Equal(seen, name) {
			return false
		}
	}
	if s.n < few {
		s.list[s.n] = name
		s.n++
		return true
	}
	if s.rest == nil {
		s.rest = make(map[string]struct{})
	}
	if _, ok := s.rest[string(name)]; ok {
		return false
	}
	s.rest[string(name)] = struct{}{}
	return true
}

// clip bounds what of a name is told.
func clip(name []byte) []byte {
	const longest = 64
	return name[:min(len(name), longest)]
}
