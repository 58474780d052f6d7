package resident_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/resident"
)

// Of a binary that is linked at an address of its choice, some of the pages
// that are read-only in the end were written before: these must stay.
func TestDiscardable(t *testing.T) {
	t.Parallel()
	const smaps = `00400000-0195e000 r-xp 00000000 00:2a 11 /app/kubectl-ocm
Size:              21880 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
0195e000-03037000 r--p 0155e000 00:2a 11                     /app/kubectl-ocm
Rss:               16164 kB
Anonymous:             0 kB
03037000-03040000 r--p 02c37000 00:2a 11                     /app/kubectl-ocm
Anonymous:             8 kB
03040000-03050000 rw-p 02c40000 00:2a 11                     /app/kubectl-ocm
Anonymous:             0 kB
03050000-03060000 r--s 00000000 00:2a 12                     /shared
Anonymous:             0 kB
03060000-03070000 r--p 00000000 00:2a 13                     /no/word
c000000000-c000400000 rw-p 00000000 00:00 0
Anonymous:             0 kB
7ffd0000-7ffd4000 r--p 00000000 00:00 0                      [vvar]
Anonymous:             0 kB
x-y r--p 00000000 00:2a 14 /broken
Anonymous:             0 kB
`
	got, err := resident.Discardable(strings.NewReader(smaps))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][2]uintptr{{0x400000, 0x195e000}, {0x195e000, 0x3037000}}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
