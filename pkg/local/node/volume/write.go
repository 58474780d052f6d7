package volume

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The symbolic link that is swapped, named as kubelets do, and the prefix of the
// directories that it points to.
const (
	dataLink    = "..data"
	dataLinkNew = "..data_new"
	dataDir     = "..content-"
)

// dirMode is the mode of directories in a volume, as on any node; the directory
// of the Pod around them is private.
const dirMode = 0o755

// File is a file of a volume.
type File struct {
	Data []byte
	Mode fs.FileMode
}

// Write makes files, by their relative paths, the content of dir. It does
// nothing when they are the content already.
func Write(dir string, files map[string]File) (changed bool, err error) {
	current, err := os.Readlink(filepath.Join(dir, dataLink))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if err == nil && same(filepath.Join(dir, current), files) {
		return false, nil
	}
	next, err := os.MkdirTemp(dir, dataDir)
	if err != nil {
		return false, err
	}
	if err := errors.Join(os.Chmod(next, dirMode), writeAll(next, files)); err != nil {
		return false, errors.Join(err, os.RemoveAll(next))
	}
	// A crash may have left the new link.
	if err := os.Remove(filepath.Join(dir, dataLinkNew)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if err := os.Symlink(filepath.Base(next), filepath.Join(dir, dataLinkNew)); err != nil {
		return false, err
	}
	if err := os.Rename(filepath.Join(dir, dataLinkNew), filepath.Join(dir, dataLink)); err != nil {
		return false, err
	}
	return true, errors.Join(link(dir, files), clean(dir, filepath.Base(next)))
}

func writeAll(dir string, files map[string]File) error {
	for name, file := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), dirMode); err != nil {
			return err
		}
		if err := os.WriteFile(path, file.Data, file.Mode); err != nil {
			return err
		}
		// The mode of a new file is subject to the umask.
		if err := os.Chmod(path, file.Mode); err != nil {
			return err
		}
	}
	return nil
}

// same reports whether the files below dir equal files.
func same(dir string, files map[string]File) bool {
	content := os.DirFS(dir)
	seen := 0
	err := fs.WalkDir(content, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		want, ok := files[name]
		data, err := fs.ReadFile(content, name)
		if err != nil || !ok || !bytes.Equal(data, want.Data) {
			return errors.Join(err, fs.SkipAll)
		}
		seen++
		return nil
	})
	return err == nil && seen == len(files)
}

// link gives every top-level name of files a link that follows the swapped one,
// and takes away those of names that are gone.
func link(dir string, files map[string]File) error {
	wanted := map[string]bool{}
	for name := range files {
		top, _, _ := strings.Cut(name, "/")
		wanted[top] = true
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		switch {
		case strings.HasPrefix(name, ".."):
		case wanted[name]:
			delete(wanted, name)
		default:
			err = errors.Join(err, os.Remove(filepath.Join(dir, name)))
		}
	}
	for name := range wanted {
		err = errors.Join(err, os.Symlink(filepath.Join(dataLink, name), filepath.Join(dir, name)))
	}
	return err
}

// clean removes the directories of earlier contents.
func clean(dir, keep string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), dataDir) && entry.Name() != keep {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
		}
	}
	return err
}
