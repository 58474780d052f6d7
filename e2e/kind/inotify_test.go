package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckInotify: a run ends before it creates clusters that would crash.
func TestCheckInotify(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "limit")
	if err := os.WriteFile(path, []byte("128\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := checkInotify(path, 5); err == nil || !strings.Contains(err.Error(), "sysctl fs.inotify.max_user_instances=1024") {
		t.Errorf("five clusters: %v", err)
	}
	if err := checkInotify(path, 1); err != nil {
		t.Errorf("one cluster: %v", err)
	}
	if err := checkInotify(path+".none", 5); err != nil {
		t.Errorf("no limit: %v", err)
	}
}
