package identity

import (
	"bytes"
	"encoding/json"
)

// Policy is an IAM policy document. Its JSON has the order of IAM's own examples.
type Policy struct {
	Version   string      `json:"Version"`
	Statement []Statement `json:"Statement"`
}

// Statement allows something.
type Statement struct {
	Effect    string      `json:"Effect"`
	Principal *Principal  `json:"Principal,omitempty"`
	Action    OneOrMore   `json:"Action"`
	Resource  OneOrMore   `json:"Resource,omitempty"`
	Condition *Conditions `json:"Condition,omitempty"`
}

// Principal is who a trust policy lets in; one of its fields is set.
type Principal struct {
	AWS       string `json:"AWS,omitempty"`
	Federated string `json:"Federated,omitempty"`
	Service   string `json:"Service,omitempty"`
}

// Conditions must all hold.
type Conditions struct {
	StringEquals Equals `json:"StringEquals"`
}

// Equals lists condition keys with their values, in order.
type Equals []Equal

// Equal is a condition key and the values that it may have.
type Equal struct {
	Key    string
	Values OneOrMore
}

// OneOrMore is a list that a document writes without brackets when it has one item.
type OneOrMore []string

// MarshalJSON implements json.Marshaler.
func (o OneOrMore) MarshalJSON() ([]byte, error) {
	if len(o) == 1 {
		return encode(o[0])
	}
	return encode([]string(o))
}

// MarshalJSON implements json.Marshaler: an object whose members have the order
// of the list.
func (e Equals) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	for i, item := range e {
		out.WriteByte("{,"[min(i, 1)])
		for j, part := range []any{item.Key, item.Values} {
			data, err := encode(part)
			if err != nil {
				return nil, err
			}
			if j > 0 {
				out.WriteByte(':')
			}
			out.Write(data)
		}
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// Compact returns the document in one line, as IAM's API takes it.
func (p Policy) Compact() (string, error) {
	data, err := encode(p)
	return string(data), err
}

// encode is json.Marshal without the escapes that are for HTML.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// policy is a document of the present version of the policy language.
func policy(statements ...Statement) Policy {
	return Policy{Version: "2012-10-17", Statement: statements}
}

func allow(actions ...string) Statement { return Statement{Effect: "Allow", Action: actions} }

func (s Statement) on(resources ...string) Statement {
	s.Resource = resources
	return s
}

func (s Statement) by(principal Principal, conditions ...Equal) Statement {
	s.Principal, s.Condition = &principal, &Conditions{StringEquals: conditions}
	return s
}

func equal(key string, values ...string) Equal { return Equal{Key: key, Values: values} }
