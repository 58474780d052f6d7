package provision

import (
	"fmt"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
)

// Commands returns the commands of the AWS CLI that make roles, as a POSIX shell
// script. The error is about encoding a policy.
func Commands(roles []identity.Role) (string, error) {
	var out strings.Builder
	for i, role := range roles {
		if i > 0 {
			out.WriteByte('\n')
		}
		if err := script(&out, role); err != nil {
			return "", err
		}
	}
	return out.String(), nil
}

func script(out *strings.Builder, role identity.Role) error {
	_, _ = fmt.Fprintf(out, "# In account %s: %s\n", role.ARN.Account, role.Purpose)
	trust, err := role.Trust.Compact()
	if err != nil {
		return fmt.Errorf("trust policy of %s: %w", role.ARN, err)
	}
	create := []string{"aws", "iam", "create-role", "--role-name", role.ARN.Name}
	if role.ARN.Path != "/" {
		create = append(create, "--path", role.ARN.Path)
	}
	create = append(create, "--assume-role-policy-document", trust)
	if len(role.Tags) > 0 {
		create = append(create, "--tags")
	}
	for _, tag := range role.Tags {
		create = append(create, "Key="+tag.Key+",Value="+tag.Value)
	}
	line(out, create...)
	if role.Access != nil {
		access, err := role.Access.Compact()
		if err != nil {
			return fmt.Errorf("access policy of %s: %w", role.ARN, err)
		}
		line(out, "aws", "iam", "put-role-policy", "--role-name", role.ARN.Name, "--policy-name", PolicyName, "--policy-document", access)
	}
	for _, a := range associations(role) {
		line(out, "aws", "eks", "create-pod-identity-association", "--region", a.Region, "--cluster-name", a.Cluster,
			"--namespace", a.Namespace, "--service-account", a.ServiceAccount, "--role-arn", role.ARN.String())
	}
	return nil
}

// line writes a command with one option a line.
func line(out *strings.Builder, words ...string) {
	for i, word := range words {
		switch {
		case strings.HasPrefix(word, "--"):
			out.WriteString(" \\\n  ")
		case i > 0:
			out.WriteByte(' ')
		}
		out.WriteString(quote(word))
	}
	out.WriteByte('\n')
}

// quote makes a word literal for a POSIX shell.
func quote(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.,:/@+=%"
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
