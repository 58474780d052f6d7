package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/kind/pkg/log"
)

// logger prints what kind reports, line by line: clusters start side by side.
type logger struct{}

func (logger) Warn(message string)              { fmt.Fprintln(os.Stderr, message) }
func (l logger) Warnf(format string, a ...any)  { l.Warn(fmt.Sprintf(format, a...)) }
func (l logger) Error(message string)           { l.Warn(message) }
func (l logger) Errorf(format string, a ...any) { l.Warnf(format, a...) }

func (logger) V(level log.Level) log.InfoLogger { return log.NoopInfoLogger{} }
