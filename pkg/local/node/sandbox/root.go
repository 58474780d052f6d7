package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// hostDirs are the parts of the host that a dynamically linked executable may
// need: its loader and libraries, the resolver's configuration and the trusted
// certificate authorities.
func hostDirs() []string {
	return []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/nix",
		"/run/systemd/resolve", "/run/NetworkManager", "/run/resolvconf",
	}
}

// Modes inside the new root, as they are in an image.
const (
	dirMode  = 0o755
	fileMode = 0o644
)

// root is the file system tree that is being built for a container.
type root struct {
	dir    string
	mounts []Mount
}

// buildRoot makes the new root and moves into it.
func buildRoot(spec Spec) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make / private: %w", err)
	}
	if err := unix.Mount("tmpfs", spec.Root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=64m"); err != nil {
		return fmt.Errorf("mount the root: %w", err)
	}
	r := root{dir: spec.Root, mounts: spec.Mounts}
	if err := r.image(spec); err != nil {
		return err
	}
	if !spec.ReadOnlyRoot {
		if err := r.mkdir("/tmp", 0o777); err != nil {
			return err
		}
	}
	for _, m := range spec.Mounts {
		if err := r.bindVolume(m); err != nil {
			return err
		}
	}
	if spec.ReadOnlyRoot {
		if err := readOnly(spec.Root, 0); err != nil {
			return err
		}
	}
	return r.enter()
}

// image creates the container's files apart from volumes.
func (r root) image(spec Spec) error {
	for _, dir := range hostDirs() {
		if err := r.bindHost(dir); err != nil {
			return err
		}
	}
	if err := r.bindFile(spec.Binary, spec.BinaryPath()); err != nil {
		return err
	}
	return r.system()
}

// enter makes the tree the root of this process and lets go of the host's.
func (r root) enter() error {
	if err := os.Chdir(r.dir); err != nil {
		return err
	}
	// The old root ends up below the new one and is taken away from there.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("detach the old root: %w", err)
	}
	return os.Chdir("/")
}

func (r root) path(inside string) string { return filepath.Join(r.dir, inside) }

func (r root) mkdir(inside string, mode os.FileMode) error {
	if err := os.MkdirAll(r.path(inside), dirMode); err != nil {
		return err
	}
	return os.Chmod(r.path(inside), mode)
}

// bindHost shows a directory, file or link of the host, read-only, at the same
// path. Where a volume belongs below a directory, that directory is rebuilt
// entry by entry, because its mount point cannot be made on the host.
func (r root) bindHost(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	switch {
	case info.Mode()&os.ModeSymlink != 0:
		target, err := os.Readlink(path)
		if err != nil {
			return err
		}
		return os.Symlink(target, r.path(path))
	case !info.IsDir():
		return r.bindFile(path, path)
	case r.volumeBelow(path):
		return r.rebuild(path)
	}
	if err := os.MkdirAll(r.path(path), dirMode); err != nil {
		return err
	}
	return bindReadOnly(path, r.path(path))
}

func (r root) volumeBelow(dir string) bool {
	return slices.ContainsFunc(r.mounts, func(m Mount) bool { return strings.HasPrefix(m.Path, dir+"/") })
}

func (r root) rebuild(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(r.path(dir), dirMode); err != nil {
		return err
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if slices.ContainsFunc(r.mounts, func(m Mount) bool { return m.Path == path }) {
			continue
		}
		// What this user may not see, the container does not see either.
		if err := r.bindHost(path); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}

func (r root) bindFile(source, inside string) error {
	if err := r.touch(inside); err != nil {
		return err
	}
	return bindReadOnly(source, r.path(inside))
}

func (r root) touch(inside string) error {
	f, err := os.OpenFile(r.path(inside), os.O_CREATE|os.O_WRONLY, fileMode)
	if err != nil {
		return err
	}
	return f.Close()
}

// system mounts /proc for the new PID namespace and the harmless devices.
func (r root) system() error {
	if err := errors.Join(r.mkdir("/proc", dirMode), r.mkdir("/dev", dirMode)); err != nil {
		return err
	}
	err := unix.Mount("proc", r.path("/proc"), "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	if errors.Is(err, unix.EPERM) {
		// Inside a container whose /proc is partly hidden only the outer one
		// can be shown.
		err = unix.Mount("/proc", r.path("/proc"), "", unix.MS_BIND|unix.MS_REC, "")
	}
	if err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom"} {
		device := "/dev/" + name
		if err := r.touch(device); err != nil {
			return err
		}
		if err := unix.Mount(device, r.path(device), "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind %s: %w", device, err)
		}
	}
	return errors.Join(
		os.Symlink("/proc/self/fd", r.path("/dev/fd")),
		os.Symlink("/proc/self/fd/1", r.path("/dev/stdout")),
		os.Symlink("/proc/self/fd/2", r.path("/dev/stderr")),
	)
}

func (r root) bindVolume(m Mount) error {
	if err := os.MkdirAll(r.path(m.Path), dirMode); err != nil {
		return fmt.Errorf("mount point %s: %w", m.Path, err)
	}
	if m.ReadOnly {
		return bindReadOnly(m.Source, r.path(m.Path))
	}
	if err := unix.Mount(m.Source, r.path(m.Path), "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s: %w", m.Path, err)
	}
	return nil
}

func bindReadOnly(source, target string) error {
	if err := unix.Mount(source, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("bind %s: %w", source, err)
	}
	return readOnly(target, unix.AT_RECURSIVE)
}

// readOnly makes a mount read-only. Kernels before 5.12 cannot do it without
// knowing the mount's other flags; there it stays writable.
func readOnly(target string, flags uint) error {
	err := unix.MountSetattr(unix.AT_FDCWD, target, flags, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	if err != nil && !errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("make %s read-only: %w", target, err)
	}
	return nil
}
