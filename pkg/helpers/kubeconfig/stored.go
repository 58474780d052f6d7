package kubeconfig

import (
	"crypto/md5" //nolint:gosec // its length is that of the roles' identifiers
	"encoding/hex"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// UnsafeError says that a kubeconfig, used as it is, would run a program or read
// a file that does not belong to it. Kubeconfigs that lie in a cluster are
// written by others than the one who uses them, often with more rights: an
// administrator's machine must not run their commands or send them its files.
type UnsafeError struct {
	// Does says what the kubeconfig does, in the third person.
	Does string
}

// Error implements error.
func (e *UnsafeError) Error() string {
	return fmt.Sprintf("%v: it %s, which a kubeconfig that is stored in a cluster may not", ErrInvalid, e.Does)
}

// Unwrap returns ErrInvalid.
func (e *UnsafeError) Unwrap() error { return ErrInvalid }

// Contained returns a kubeconfig that was stored in a Secret in a form that is
// safe to use on any machine: each file that it names is replaced by the content
// of the Secret's key of that name, regardless of the path's directory, and never
// read from disk. A credential plugin is refused unless it is this program's own,
// which runs as the present executable. Every error is an *UnsafeError or wraps
// ErrInvalid.
func (h Hub) Contained(files map[string][]byte) (Hub, error) {
	token := []byte(h.User.Token)
	for _, f := range append(h.files(), file{"tokenFile", &h.User.TokenFile, &token}) {
		if *f.name == "" {
			continue
		}
		content, ok := files[path.Base(*f.name)]
		if !ok && len(*f.data) == 0 {
			return Hub{}, &UnsafeError{Does: fmt.Sprintf("names the %s %q, which its Secret does not hold", f.field, *f.name)}
		}
		if len(*f.data) == 0 {
			*f.data = content
		}
		*f.name = ""
	}
	h.User.Token = string(token)
	return h.withoutForeignPrograms()
}

// Mounted is Contained for a kubeconfig whose Secret is mounted at dir. Its files
// stay files, so that clients follow their changes, but none may lie elsewhere.
func (h Hub) Mounted(dir string) (Hub, error) {
	var noData []byte
	for _, f := range append(h.files(), file{"tokenFile", &h.User.TokenFile, &noData}) {
		if *f.name == "" {
			continue
		}
		name := *f.name
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		if within, err := filepath.Rel(dir, name); err != nil || !filepath.IsLocal(within) {
			return Hub{}, &UnsafeError{Does: fmt.Sprintf("names the %s %q, which is not a file next to it", f.field, *f.name)}
		}
		*f.name = name
	}
	return h.withoutForeignPrograms()
}

// file is a field that names a file, and the one that holds its content instead.
type file struct {
	field string
	name  *string
	data  *[]byte
}

// files returns the fields of h that name files, but for the token's, whose
// content is no byte slice.
func (h *Hub) files() []file {
	return []file{
		{"certificate-authority", &h.Cluster.CertificateAuthority, &h.Cluster.CertificateAuthorityData},
		{"client-certificate", &h.User.ClientCertificate, &h.User.ClientCertificateData},
		{"client-key", &h.User.ClientKey, &h.User.ClientKeyData},
	}
}

// withoutForeignPrograms rejects auth providers, because some run commands, and
// credential plugins other than ours.
func (h Hub) withoutForeignPrograms() (Hub, error) {
	if provider := h.User.AuthProvider; provider != nil {
		return Hub{}, &UnsafeError{Does: fmt.Sprintf("uses the auth provider %q", provider.Name)}
	}
	if h.User.Exec == nil {
		return h, nil
	}
	if !ownPlugin(h.User.Exec) {
		return Hub{}, &UnsafeError{Does: fmt.Sprintf("runs the program %q", h.User.Exec.Command)}
	}
	self, err := os.Executable()
	if err != nil {
		return Hub{}, fmt.Errorf("the path of this program is unknown: %w", err)
	}
	// A new entry: the environment, the hint and other fields of the stored one are
	// not trusted.
	h.User.Exec = &clientcmdapi.ExecConfig{
		APIVersion:      h.User.Exec.APIVersion,
		Command:         self,
		Args:            slices.Clone(h.User.Exec.Args),
		InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}
	return h, nil
}

// ownPlugin reports whether an entry is for "kubectl-ocm aws get-token" as
// agents store it. It must name a role that the hub made for a cluster, and
// nothing but the flags of that: the token of a role that the user of the
// kubeconfig has of their own would reach the stored server otherwise.
func ownPlugin(exec *clientcmdapi.ExecConfig) bool {
	program := strings.TrimSuffix(path.Base(strings.ReplaceAll(exec.Command, `\`, "/")), ".exe")
	if program != "kubectl-ocm" && program != "clusteradm" {
		return false
	}
	if len(exec.Args) < 2 || exec.Args[0] != "aws" || exec.Args[1] != "get-token" {
		return false
	}
	flags, ok := parseFlags(exec.Args[2:])
	return ok && isHubRole(flags["--role-arn"])
}

// parseFlags reads the flags of the plugin; it reports false for anything else,
// and for a flag that is there twice.
func parseFlags(args []string) (map[string]string, bool) {
	known := []string{"--cluster-name", "--region", "--role-arn"}
	flags := map[string]string{}
	for i := 0; i < len(args); i++ {
		name, value, ok := strings.Cut(args[i], "=")
		if !ok {
			if i++; i == len(args) {
				return nil, false
			}
			value = args[i]
		}
		if _, twice := flags[name]; twice || !slices.Contains(known, name) {
			return nil, false
		}
		flags[name] = value
	}
	return flags, true
}

// isHubRole reports whether arn is of a role that hubs make for clusters, which
// only the cluster's own role can assume.
func isHubRole(arn string) bool {
	prefix, name, _ := strings.Cut(arn, ":role/ocm-hub-")
	return strings.HasPrefix(prefix, "arn:aws") && strings.Contains(prefix, ":iam::") &&
		len(name) == hex.EncodedLen(md5.Size) && strings.Trim(name, "0123456789abcdef") == ""
}

// Config returns the client configuration of h, which runs its plugin and reads
// its files: of a stored kubeconfig, take Contained or Mounted first.
func (h Hub) Config() (*rest.Config, error) {
	const one = "hub"
	raw := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{one: &h.Cluster},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{one: &h.User},
		Contexts:       map[string]*clientcmdapi.Context{one: {Cluster: one, AuthInfo: one}},
		CurrentContext: one,
	}
	config, err := clientcmd.NewDefaultClientConfig(raw, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("%w: it cannot be used", ErrInvalid)
	}
	return config, nil
}
