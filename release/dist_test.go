package main

import (
	"slices"
	"strings"
	"testing"
)

// TestParseDist: what has a tag is published, and needs the version of the tag and an image.
func TestParseDist(t *testing.T) {
	t.Parallel()
	all := []string{"-dir=a", "-platforms=linux/amd64", "-pages=b", "-image=c", "-maintainer=A <a@example.com>", "-source=https://example.com/ocm", "-version=v1.2.3", "-output=d"}
	for name, tc := range map[string]struct {
		args []string
		err  string
	}{
		"a build":                 {args: all},
		"a release":               {args: append(slices.Clone(all), "-tag=v1.2.3", "-repository=registry.example.com/ocm")},
		"another tag":             {args: append(slices.Clone(all), "-tag=v1.2.4", "-repository=registry.example.com/ocm"), err: "tag the commit whose version it is"},
		"a release of no image":   {args: append(slices.Clone(all), "-tag=v1.2.3"), err: "set IMAGE_REPOSITORY"},
		"no address":              {args: append(slices.Clone(all), "-maintainer=somebody"), err: "-maintainer"},
		"no archive of the image": {args: slices.DeleteFunc(slices.Clone(all), func(a string) bool { return a == "-image=c" }), err: "-image"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parseDist(tc.args)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("got %v, want %q", err, tc.err)
			}
		})
	}
}
