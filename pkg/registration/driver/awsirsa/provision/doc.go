// Package provision writes IAM roles in the forms by which people create them:
// CloudFormation templates, Terraform configurations and commands of the AWS CLI.
// It makes no call to AWS: who may create roles there decides how.
package provision
