package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// Check tries whether containers can be started here, by starting one whose
// process ends at once. The error wraps ErrNamespaces or ErrSetUp.
func (l Launcher) Check(root string, args ...string) error {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = null.Close() }()
	p, err := l.Start(Spec{Root: root, Hostname: "check", Binary: l.Self[0], Args: args, ReadOnlyRoot: true}, null)
	if err != nil {
		return err
	}
	<-p.Done()
	if err := p.Err(); err != nil {
		return fmt.Errorf("%w: the check ended with %w", ErrSetUp, err)
	}
	return nil
}

// Advice returns how an administrator allows what Start was denied, as far as the
// system's settings show.
func Advice(err error) string {
	if !errors.Is(err, ErrNamespaces) && !errors.Is(err, ErrSetUp) {
		return ""
	}
	for _, setting := range []struct{ file, bad, command string }{
		{"/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"},
		{"/proc/sys/user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=10000"},
		{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"},
	} {
		data, readErr := os.ReadFile(setting.file)
		if readErr == nil && strings.TrimSpace(string(data)) == setting.bad {
			return "as root: " + setting.command
		}
	}
	return "run on a machine, not in a container, or in a container that may make user namespaces " +
		"(Docker: --security-opt seccomp=unconfined --security-opt apparmor=unconfined)"
}
