package local

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node/sandbox"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/process"
)

// spacePerCluster is the disk space of a cluster that is little used: etcd's data and
// logs.
const spacePerCluster = 256 << 20

// preflight returns everything that would prevent clusters from running.
func preflight(o Options) error {
	if runtime.GOOS != "linux" {
		return &HintedError{
			Err:  fmt.Errorf("local clusters run on Linux only, not on %s", runtime.GOOS),
			Todo: "use kind clusters here",
		}
	}
	return errors.Join(checkSpace(o), checkContainers(o), checkImages(o))
}

func checkSpace(o Options) error {
	// The directory may not exist yet; its first existing parent is on the same disk.
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return err
	}
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	free, need := stat.Bavail*uint64(stat.Bsize), uint64(o.Managed+1)*spacePerCluster //nolint:gosec // neither is negative
	if free < need {
		return &HintedError{
			Err: fmt.Errorf("%d local clusters need %d MiB below %s, and %d MiB are free",
				o.Managed+1, need>>20, dir, free>>20),
			Todo: "free some space, or name another directory with --dir",
		}
	}
	return nil
}

// checkContainers starts one container.
func checkContainers(o Options) error {
	group := process.NewGroup()
	defer group.Close()
	root, err := os.MkdirTemp("", "ocm-local-check-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(root) }() // empty
	// The check is over when our own executable has been run inside.
	err = sandbox.Launcher{Group: group, Self: o.Container}.Check(root, "version", "--client")
	if err == nil {
		return nil
	}
	return &HintedError{
		Err:  fmt.Errorf("local clusters cannot run Pods here: %w", err),
		Todo: sandbox.Advice(err),
	}
}

func checkImages(o Options) error {
	var missing []error
	for image, path := range o.Images {
		if _, err := exec.LookPath(path); err != nil {
			missing = append(missing, &HintedError{
				Err:  fmt.Errorf("image %s: %s is no executable file", image, path),
				Todo: "build it first",
			})
		}
	}
	return errors.Join(missing...)
}

// explainSpace adds what to do when the disk is full.
func explainSpace(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return &HintedError{Err: err, Todo: "free some space, or name another directory with --dir"}
	}
	return err
}
