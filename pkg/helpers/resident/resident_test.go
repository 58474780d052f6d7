//go:build linux

package resident_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/resident"
)

// filePages is how much of the process's files is resident, in KiB.
func filePages(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "\nRssFile:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kib
}

// What a start has touched is given back, and everything works as before.
func TestTrim(t *testing.T) { //nolint:paralleltest // It measures the process.
	before := filePages(t)
	if err := resident.Trim(); err != nil {
		t.Fatal(err)
	}
	if after := filePages(t); after >= before {
		t.Errorf("%d KiB of files were resident before, %d after", before, after)
	}
	if got := strings.ToUpper("still here"); got != "STILL HERE" {
		t.Error(got)
	}
}
