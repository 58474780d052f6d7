// Package provision renders IAM roles as CloudFormation templates, Terraform
// configurations and commands of the AWS CLI, for the administrators of the accounts.
// It never calls AWS.
package provision
