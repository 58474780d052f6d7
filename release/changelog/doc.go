// Package changelog reads the sections of a changelog in the format of Keep a Changelog.
package changelog
