// Package flagvalue writes values of a resource into flags of a component, so
// that the component reads what the resource says: a comma inside a value, as
// in a user name of LDAP, does not make two values of it.
package flagvalue
