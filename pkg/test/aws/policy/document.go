package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Document is a policy that was read and checked.
type Document struct {
	Version    string     `json:"Version"`
	ID         string     `json:"Id,omitempty"`
	Statements statements `json:"Statement"`
}

// Statement is one statement of a policy.
type Statement struct {
	Sid        string     `json:"Sid,omitempty"`
	Effect     string     `json:"Effect"`
	Principal  *principal `json:"Principal,omitempty"`
	Actions    texts      `json:"Action,omitempty"`
	Resources  texts      `json:"Resource,omitempty"`
	Conditions conditions `json:"Condition"`
}

// ParseIdentity reads a policy of a role or a user. It names no principals.
func ParseIdentity(text string) (*Document, error) {
	return parse(text, func(s *Statement) error {
		switch {
		case s.Principal != nil:
			return errors.New("policy document should not specify a principal")
		case len(s.Resources) == 0:
			return errors.New("policy statement must contain resources")
		}
		return nil
	})
}

// ParseTrust reads the trust policy of a role. Its resource is the role itself.
func ParseTrust(text string) (*Document, error) {
	return parse(text, func(s *Statement) error {
		switch {
		case len(s.Resources) > 0:
			return errors.New("has prohibited field Resource")
		case s.Principal == nil:
			return errors.New("missing required field Principal")
		}
		return nil
	})
}

// Principals lists what the statements name as principals of kind: "AWS",
// "Federated" or "Service".
func (d *Document) Principals(kind string) []string {
	var names []string
	for i := range d.Statements {
		if p := d.Statements[i].Principal; p != nil {
			names = append(names, p.named[kind]...)
		}
	}
	return names
}

func parse(text string, check func(*Statement) error) (*Document, error) {
	d := &Document{}
	if err := decode([]byte(text), d); err != nil {
		return nil, fmt.Errorf("syntax errors in policy: %w", err)
	}
	if d.Version != "2012-10-17" && d.Version != "2008-10-17" {
		return nil, fmt.Errorf("policy document must be version 2012-10-17 or greater, not %q", d.Version)
	}
	for i := range d.Statements {
		if err := errors.Join(d.Statements[i].check(), check(&d.Statements[i])); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (s *Statement) check() error {
	if s.Effect != "Allow" && s.Effect != "Deny" {
		return fmt.Errorf("invalid effect %q", s.Effect)
	}
	if len(s.Actions) == 0 {
		return errors.New("policy statement must contain actions")
	}
	return nil
}

// decode reads exactly one value and refuses fields that it does not know.
func decode(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the policy")
	}
	return nil
}

// texts is a string or a list of strings.
type texts []string

// UnmarshalJSON implements json.Unmarshaler.
func (t *texts) UnmarshalJSON(data []byte) error {
	if data[0] != '[' {
		data = append(append([]byte{'['}, data...), ']')
	}
	if bytes.Contains(data, []byte("${")) {
		return fmt.Errorf("a policy variable, which the emulated IAM does not know, as no policy of ours has one: %s", data)
	}
	return json.Unmarshal(data, (*[]string)(t))
}

// statements is a statement or a list of them.
type statements []Statement

// UnmarshalJSON implements json.Unmarshaler. The decoder's strictness does not
// reach in here.
func (s *statements) UnmarshalJSON(data []byte) error {
	if data[0] != '[' {
		data = append(append([]byte{'['}, data...), ']')
	}
	var list []Statement
	if err := decode(data, &list); err != nil {
		return err
	}
	*s = list
	return nil
}

// principal is "*", or names by kind.
type principal struct {
	anyone bool
	named  map[string]texts
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *principal) UnmarshalJSON(data []byte) error {
	if string(data) == `"*"` {
		p.anyone = true
		return nil
	}
	if err := json.Unmarshal(data, &p.named); err != nil {
		return err
	}
	for kind := range p.named {
		switch kind {
		case "AWS", "Federated", "Service":
		default:
			return fmt.Errorf("invalid principal %q", kind)
		}
	}
	return nil
}
