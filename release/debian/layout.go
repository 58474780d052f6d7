package debian

import (
	"bytes"
	"compress/gzip"
	"crypto/md5" //nolint:gosec // dpkg finds damaged files by it; it protects nothing.
	"embed"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"text/template"

	"github.com/kubectl-ocm/kubectl-ocm/release/archive"
)

//go:embed templates
var templates embed.FS

// layout returns the files of the package by their paths on a system, and those that
// dpkg keeps about it.
func (p Package) layout() ([]archive.File, error) {
	files, err := p.installed()
	if err != nil {
		return nil, err
	}
	var sums strings.Builder
	var size int64
	for _, file := range files {
		content, err := file.Read()
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(content), file.Name) //nolint:gosec // See the import.
		size += (int64(len(content)) + 1023) / 1024
	}
	control, err := p.render("control", size)
	if err != nil {
		return nil, err
	}
	control.Name = "DEBIAN/control"
	return append(files, control, archive.File{Name: "DEBIAN/md5sums", Mode: archive.Plain, Data: []byte(sums.String())}), nil
}

// installed returns the files that are installed.
func (p Package) installed() ([]archive.File, error) {
	documents := "usr/share/doc/" + p.Name + "/"
	var files []archive.File
	for _, file := range p.Files {
		place, err := p.place(file, documents)
		if err != nil {
			return nil, err
		}
		files = append(files, place...)
	}
	for name, place := range map[string]string{
		"copyright": documents + "copyright",
		"changelog": documents + "changelog.gz",
		"overrides": "usr/share/lintian/overrides/" + p.Name,
	} {
		file, err := p.render(name, 0)
		if err != nil {
			return nil, err
		}
		file.Name = place
		if file, err = compressed(file); err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	slices.SortFunc(files, func(a, b archive.File) int { return strings.Compare(a.Name, b.Name) })
	return files, nil
}

// place gives a file of the archive its place on a system, if it has one there.
func (p Package) place(file archive.File, documents string) ([]archive.File, error) {
	name := p.Name
	switch directory, base := path.Split(file.Name); {
	case directory == "" && file.Mode == archive.Executable:
		file.Name = p.Programs + base
	case directory == "man/man1/":
		file.Name = "usr/share/man/man1/" + base + ".gz"
	case file.Name == "completions/"+name+".bash":
		file.Name = "usr/share/bash-completion/completions/" + name
	case file.Name == "completions/_"+name:
		file.Name = "usr/share/zsh/vendor-completions/" + base
	case file.Name == "completions/"+name+".fish":
		file.Name = "usr/share/fish/vendor_completions.d/" + base
	case strings.HasPrefix(directory, "licenses/"):
		file.Name = documents + file.Name
	default:
		return nil, nil
	}
	file, err := compressed(file)
	return []archive.File{file}, err
}

// compressed compresses a file whose new name says so.
func compressed(file archive.File) (archive.File, error) {
	if path.Ext(file.Name) != ".gz" {
		return file, nil
	}
	content, err := file.Read()
	if err != nil {
		return file, err
	}
	var out bytes.Buffer
	writer, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return file, err
	}
	if _, err := io.Copy(writer, bytes.NewReader(content)); err != nil {
		return file, err
	}
	if err := writer.Close(); err != nil {
		return file, err
	}
	return archive.File{Name: file.Name, Mode: file.Mode, Data: out.Bytes()}, nil
}

// render fills in a template. Size is that of the installed files in KiB.
func (p Package) render(name string, size int64) (archive.File, error) {
	parsed, err := template.ParseFS(templates, "templates/"+name)
	if err != nil {
		return archive.File{}, err
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, struct {
		Package
		Size int64
	}{p, size}); err != nil {
		return archive.File{}, err
	}
	return archive.File{Mode: archive.Plain, Data: out.Bytes()}, nil
}
