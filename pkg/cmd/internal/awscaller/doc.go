// Package awscaller finds out whose AWS credentials a command runs with, and says
// what is wrong with them. It uses them for nothing else.
package awscaller
