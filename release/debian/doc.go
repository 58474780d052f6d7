// Package debian builds the Debian package of a release with dpkg-deb.
package debian
