package archive

import (
	"archive/tar"
	"archive/zip"
	"cmp"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Mode of a file that is run, and of one that is not.
const (
	Executable fs.FileMode = 0o755
	Plain      fs.FileMode = 0o644
)

// File is a file of an archive: the content of Path, or Data where there is no Path.
type File struct {
	Name string
	Mode fs.FileMode
	Path string
	Data []byte
}

// Files returns the files below a directory, by their paths in it.
func Files(dir string) ([]File, error) {
	var files []File
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		files = append(files, File{Name: filepath.ToSlash(name), Mode: Plain, Path: path})
		return err
	})
	return files, err
}

// Read returns the content.
func (f File) Read() ([]byte, error) {
	if f.Path == "" {
		return f.Data, nil
	}
	return os.ReadFile(f.Path)
}

// Save writes the file below a directory.
func (f File) Save(dir string) error {
	content, err := f.Read()
	if err != nil {
		return err
	}
	path := filepath.Join(dir, filepath.FromSlash(f.Name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // What is packed is read by everybody.
		return err
	}
	return os.WriteFile(path, content, f.Mode)
}

// Tar writes the files, sorted by name and dated alike. They belong to root.
func Tar(w io.Writer, date time.Time, files []File) error {
	out := tar.NewWriter(w)
	for _, file := range sorted(files) {
		content, err := file.Read()
		if err != nil {
			return err
		}
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: file.Name, Size: int64(len(content)), Mode: int64(file.Mode.Perm()), ModTime: date, Format: tar.FormatPAX,
		}
		if err := out.WriteHeader(header); err != nil {
			return err
		}
		if _, err := out.Write(content); err != nil {
			return err
		}
	}
	return out.Close()
}

// TarGzip writes a compressed archive of the files.
func TarGzip(w io.Writer, date time.Time, files []File) error {
	out, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := Tar(out, date, files); err != nil {
		return err
	}
	return out.Close()
}

// Zip writes the files into an archive for Windows.
func Zip(w io.Writer, date time.Time, files []File) error {
	out := zip.NewWriter(w)
	for _, file := range sorted(files) {
		header := &zip.FileHeader{Name: file.Name, Method: zip.Deflate, Modified: date}
		header.SetMode(file.Mode)
		entry, err := out.CreateHeader(header)
		if err != nil {
			return err
		}
		content, err := file.Read()
		if err != nil {
			return err
		}
		if _, err := entry.Write(content); err != nil {
			return err
		}
	}
	return out.Close()
}

func sorted(files []File) []File {
	return slices.SortedFunc(slices.Values(files), func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
}
