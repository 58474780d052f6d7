// Package approver is what "accept" and a one-shot "join" have in common: it runs
// an approval.Approver with progress, explains its errors and prints the result.
// What is decided and written is in pkg/registration/approval.
package approver
