// Package approver is what "accept" and a one-shot "join" have in common: it runs
// an approval.Approver with progress, explains its errors and prints the result.
// What is decided and written is in pkg/registration/approval, with the tests of that;
// the scripts conflict, life and awsfleet in cmd/kubectl-ocm/testdata/script run this
// package as users do, and pkg/registration/byhand_test.go with credentials of the user.
package approver
