package extauthzproxy

import (
	"embed"
	"io/fs"
	"path"
	"strings"
	"testing"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/protobuf/encoding/protojson"
)

//go:embed testdata/*.json
var files embed.FS

// Golden returns CheckRequests as Envoy sends them, by the name of the client's action.
// Their tokens are placeholders; a test puts its own into the header "authorization".
func Golden(tb testing.TB) map[string]*authv3.CheckRequest {
	tb.Helper()
	names, err := fs.Glob(files, "testdata/*.json")
	if err != nil {
		tb.Fatal(err)
	}
	requests := map[string]*authv3.CheckRequest{}
	for _, name := range names {
		data, err := files.ReadFile(name)
		if err != nil {
			tb.Fatal(err)
		}
		request := &authv3.CheckRequest{}
		if err := protojson.Unmarshal(data, request); err != nil {
			tb.Fatalf("%s: %v", name, err)
		}
		requests[strings.TrimSuffix(path.Base(name), ".json")] = request
	}
	return requests
}
