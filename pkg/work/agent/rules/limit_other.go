//go:build !linux

package rules

import "errors"

// The work agent runs in containers of Linux only.
var errUnsupported = errors.New("only Linux limits a process as needed")

func limitMemory() error { return errUnsupported }

func crashOnTimeUp() {}

func limitTime() error { return errUnsupported }
