package controlplane

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// newStoreFile says that etcd's data are of a first start that is not over.
const newStoreFile = "etcd.new"

// beginStore makes sure that etcd can start. One that was killed while it made its
// data has a log without its own member, and waits for a leader forever. As long as
// the API server was never ready nothing was stored, so the data are recreated.
func (c *ControlPlane) beginStore() error {
	if etcd := c.Process(Etcd); etcd != nil {
		if _, over := etcd.Status(); !over {
			return nil
		}
	}
	data, mark := filepath.Join(c.config.Dir, etcdDir), filepath.Join(c.config.Dir, newStoreFile)
	_, errMark := os.Stat(mark)
	_, errData := os.Stat(data)
	switch {
	case errMark == nil:
		if err := os.RemoveAll(data); err != nil {
			return fmt.Errorf("remove what an interrupted start left of etcd: %w", err)
		}
		return nil
	case errData == nil:
		return nil
	case !errors.Is(errMark, fs.ErrNotExist) || !errors.Is(errData, fs.ErrNotExist):
		return errors.Join(errMark, errData)
	}
	return os.WriteFile(mark, nil, 0o600)
}

// finishStore says that etcd's data are to stay.
func (c *ControlPlane) finishStore() error {
	err := os.Remove(filepath.Join(c.config.Dir, newStoreFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
