package logs

import (
	"encoding/base64"
	"strings"
	"sync"
)

// Log keeps the entries that a logger writes.
type Log struct {
	mu      sync.Mutex
	entries []string
}

// Write implements io.Writer for a logger that writes an entry at once.
func (l *Log) Write(entry []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, string(entry))
	return len(entry), nil
}

// With returns the first entry with a text, empty if there is none.
func (l *Log) With(text string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, entry := range l.entries {
		if strings.Contains(entry, text) {
			return entry
		}
	}
	return ""
}

// String returns all entries.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.entries, "")
}

// Traces are the texts to search for to find secret in a text, either plain or encoded
// as in the data of a Secret: one of them occurs wherever secret does. A secret has
// nine bytes or more.
func Traces(secret string) []string {
	traces := []string{secret}
	for before := range 3 { // Where in a group of three bytes it begins.
		encoded := base64.RawURLEncoding.EncodeToString(append(make([]byte, before), secret...))
		encoded = encoded[4 : len(encoded)-4]
		traces = append(traces, encoded)
		if standard := strings.NewReplacer("-", "+", "_", "/").Replace(encoded); standard != encoded {
			traces = append(traces, standard)
		}
	}
	return traces
}
