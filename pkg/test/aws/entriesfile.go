package aws

import (
	"bytes"
	"encoding/json"
	"os"
)

// entriesFile is a file for the backend DynamicFile of aws-iam-authenticator. The
// authenticator reads it again after each write and takes what it finds then, so
// a write is one system call and never leaves less than a whole document: what
// is shorter than before is filled up with spaces, which JSON ignores.
type entriesFile struct {
	path   string
	length int
}

// roleMapping is one line of the file, under the authenticator's names.
type roleMapping struct {
	RoleARN  string   `json:"rolearn"`
	Username string   `json:"username"`
	Groups   []string `json:"groups"`
	UserID   string   `json:"userid"`
}

func (f *entriesFile) write(mappings []roleMapping) error {
	if f.path == "" {
		return nil
	}
	data, err := json.Marshal(map[string]any{"LastUpdatedDateTime": "0", "Version": "1", "mapRoles": mappings})
	if err != nil {
		return err
	}
	data = append(data, bytes.Repeat([]byte(" "), max(f.length-len(data), 0))...)
	file, err := os.OpenFile(f.path, os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // the test says where
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if closed := file.Close(); err == nil {
		err = closed
	}
	f.length = max(f.length, len(data))
	return err
}
