// Package addonauth is the "addon-auth" command: it shows how the add-ons of a
// fleet authenticate to the hub, changes that, asks for new credentials, cleans
// up after earlier drivers and prints permissions to start from.
//
// It obtains no credential and approves no request: that is the agents' and the
// add-ons' business. Its writes are the Klusterlet's field, an annotation and
// the removal of what carries the labels of add-on registration.
package addonauth
