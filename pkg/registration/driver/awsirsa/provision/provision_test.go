package provision_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/provision"
)

// hostile is a path that IAM takes, and that shells and Terraform read as code.
const hostile = `/a'$(touch${x}%{y}"\/`

// creator is a role whose policies and path hold what has to be escaped.
func creator(t *testing.T) identity.Role {
	t.Helper()
	hub, err := awsarn.ParseCluster("arn:aws:eks:eu-west-1:111111111111:cluster/hub")
	if err != nil {
		t.Fatal(err)
	}
	role, err := awsarn.ParseRole("arn:aws:iam::111111111111:role" + hostile + "creator")
	if err != nil {
		t.Fatal(err)
	}
	r := identity.Creator(hub, role, identity.Source{})
	r.Tags = []identity.Tag{{Key: "path", Value: hostile}}
	return r
}

// TestCommandsKeepTheirArguments gives the script to a shell in which aws prints
// its arguments.
func TestCommandsKeepTheirArguments(t *testing.T) {
	t.Parallel()
	role := creator(t)
	script, err := provision.Commands([]identity.Role{role})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-euc", "aws() { printf '%s\\n' \"$@\"; }\n"+script)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	trust, err := role.Trust.Compact()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{hostile, trust, "Key=path,Value=" + hostile, role.ARN.String()} {
		if !strings.Contains("\n"+string(out), "\n"+want+"\n") {
			t.Errorf("no argument %s in\n%s", want, out)
		}
	}
}

// TestTerraformHasNoTemplatesButOurs: every string of a configuration in JSON
// syntax is a template.
func TestTerraformHasNoTemplatesButOurs(t *testing.T) {
	t.Parallel()
	configuration, err := provision.Terraform([]identity.Role{creator(t)})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(configuration)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("$${", "", "%%{", "").Replace(string(data))
	if got := strings.Count(text, "${") + strings.Count(text, "%{"); got != 2 || strings.Count(text, "${aws_iam_role.role1.") != 2 {
		t.Errorf("%d templates in %s", got, data)
	}
}

// TestFormatsHaveTheSamePolicies: the documents are the same whatever the form.
func TestFormatsHaveTheSamePolicies(t *testing.T) {
	t.Parallel()
	roles := []identity.Role{creator(t)}
	data, err := json.Marshal(provision.CloudFormation(roles))
	if err != nil {
		t.Fatal(err)
	}
	var template struct {
		Resources map[string]struct {
			Type       string
			Properties struct {
				AssumeRolePolicyDocument json.RawMessage
				Policies                 []struct{ PolicyDocument json.RawMessage }
			}
		}
	}
	if err := json.Unmarshal(data, &template); err != nil {
		t.Fatal(err)
	}
	role := template.Resources["Role1"]
	trust, err := json.Marshal(roles[0].Trust)
	if err != nil {
		t.Fatal(err)
	}
	access, err := json.Marshal(roles[0].Access)
	if err != nil {
		t.Fatal(err)
	}
	if role.Type != "AWS::IAM::Role" || string(role.Properties.AssumeRolePolicyDocument) != string(trust) ||
		len(role.Properties.Policies) != 1 || string(role.Properties.Policies[0].PolicyDocument) != string(access) {
		t.Errorf("got %s", data)
	}
	if got := template.Resources["Role1Association1"].Type; got != "AWS::EKS::PodIdentityAssociation" {
		t.Errorf("got %q", got)
	}
}
