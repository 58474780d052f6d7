// Package precedence says which of several resources comes first where they
// would apply the same objects. Every pass over any of them must say the same,
// or two resources overwrite each other's marks for ever.
package precedence
