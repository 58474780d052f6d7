// Package strictjson reads JSON (RFC 8259) in which nobody can hide a second
// meaning: one pass, one reading.
//
// encoding/json is made to be lenient. It takes the last of several members
// with the same name, matches names without regard to case, and replaces what
// is no UTF-8; two programs that read the same signed document may therefore
// see different claims. This reader refuses repeated names in every object it
// passes, also in those that the caller skips, compares names exactly, and
// refuses invalid UTF-8 and lone surrogates.
//
// It owns the grammar and nothing that is written in it. Whatever it takes,
// encoding/json takes as well, with the same values.
package strictjson
