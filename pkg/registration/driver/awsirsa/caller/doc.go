// Package caller owns whose AWS credentials a command runs with, and what is wrong with
// them. It uses credentials for nothing but to find out whose they are.
package caller
