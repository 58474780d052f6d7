// Package components runs our operators and components in tests as their pods would: with the
// permissions of our manifests, and with the flags that the operators render.
package components
