package image_test

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/distribution/distribution/v3/configuration"
	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd" // It registers itself.
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory" // It registers itself.
	"golang.org/x/crypto/bcrypt"
)

// builder may use the registry of a test, with password.
const builder, password = "builder", "not secret: the registry ends with the test"

// serve runs a registry, and returns its address and the directory of a Docker
// configuration with builder's password.
func serve(t *testing.T) (host, login string) {
	t.Helper()
	config := &configuration.Configuration{Storage: configuration.Storage{"inmemory": {}}}
	config.Auth = configuration.Auth{"htpasswd": {"realm": "test", "path": passwords(t)}}
	config.Catalog.MaxEntries = 1
	config.HTTP.Secret = "test"
	server := httptest.NewServer(handlers.NewApp(t.Context(), config))
	t.Cleanup(server.Close)
	host = server.Listener.Addr().String()
	return host, saveLogin(t, host)
}

// passwords is the registry's file of users.
func passwords(t *testing.T) string {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	return save(t, filepath.Join(t.TempDir(), "htpasswd"), []byte(builder+":"+string(hash)+"\n"))
}

func saveLogin(t *testing.T, host string) string {
	t.Helper()
	config, err := json.Marshal(map[string]any{"auths": map[string]any{host: map[string]string{"username": builder, "password": password}}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	save(t, filepath.Join(dir, "config.json"), config)
	return dir
}

func save(t *testing.T, file string, content []byte) string {
	t.Helper()
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
