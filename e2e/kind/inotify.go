package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

const (
	// inotifyLimit has the number of inotify instances that a user may have.
	inotifyLimit = "/proc/sys/fs/inotify/max_user_instances"
	// perCluster is how many of them a cluster of one node may take: systemd, containerd,
	// kubelet and the Pods of the control plane watch files.
	perCluster = 100
)

// checkInotify fails where clusters would fail after minutes: kube-proxy crashes without an
// inotify instance. path has the limit.
func checkInotify(path string, clusters int) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil //nolint:nilerr // A kernel without inotify limits nothing.
	}
	limit, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if need := clusters * perCluster; limit < need {
		return fmt.Errorf("%d clusters need %d inotify instances, and %d are allowed; run: sudo sysctl fs.inotify.max_user_instances=1024", clusters, need, limit)
	}
	return nil
}
