package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
)

func TestExitCode(t *testing.T) {
	t.Parallel()
	notFound := apierrors.NewNotFound(schema.GroupResource{Resource: "x"}, "y")
	for _, tc := range []struct {
		name string
		err  error
		want cli.Code
	}{
		{"nothing", nil, 0},
		{"anything", errors.New("x"), 1},
		{"usage", cli.Usagef("x"), 2},
		{"usage inside another error", fmt.Errorf("x: %w", cli.Usagef("y")), 2},
		{"usage behind an explanation without a code", &cli.Explained{Problem: "x", Cause: cli.Usagef("y")}, 2},
		{"blocked", cli.Blockedf("", "x"), 3},
		{"not found", notFound, 4},
		{"explained not found", &cli.Explained{Problem: "x", Cause: notFound}, 4},
		{"time over", fmt.Errorf("x: %w", context.DeadlineExceeded), 124},
		{"interrupted", fmt.Errorf("x: %w", context.Canceled), 130},
		{"joined", errors.Join(errors.New("x"), context.Canceled), 130},
	} {
		if got := cli.ExitCode(tc.err); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}

// seen is what a server was asked.
type seen struct {
	method, query string
	body          string
}

func TestDryRunIsEnforcedInTheTransport(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, mode, method, path, body string
		sent                           bool
		wantQuery, wantBody            string
	}{
		{name: "a read", mode: "client", method: "GET", path: "/api/v1/pods", sent: true},
		{name: "a question that is posted", mode: "client", method: "POST", path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", sent: true},
		{name: "a creation", mode: "client", method: "POST", path: "/api/v1/pods", body: "{}"},
		{name: "an update", mode: "client", method: "PUT", path: "/api/v1/pods/x", body: "{}"},
		{name: "a patch", mode: "client", method: "PATCH", path: "/api/v1/pods/x", body: "{}"},
		{name: "a deletion", mode: "client", method: "DELETE", path: "/api/v1/pods/x"},
		{name: "a token", mode: "client", method: "POST", path: "/api/v1/namespaces/x/serviceaccounts/y/token", body: "{}"},
		{name: "an unknown method", mode: "client", method: "BREW", path: "/"},
		{name: "a creation on the server", mode: "server", method: "POST", path: "/api/v1/pods", body: "{}", sent: true, wantQuery: "dryRun=All", wantBody: "{}"},
		{name: "a read on the server", mode: "server", method: "GET", path: "/api/v1/pods", sent: true},
		{name: "a deletion on the server", mode: "server", method: "DELETE", path: "/x", sent: true, wantQuery: "dryRun=All"},
		{
			name: "a deletion with options on the server", mode: "server", method: "DELETE", path: "/x",
			body: `{"preconditions":{"uid":"u"}}`, sent: true, wantQuery: "dryRun=All", wantBody: `{"dryRun":["All"],"preconditions":{"uid":"u"}}`,
		},
		{name: "a deletion with options that cannot be read", mode: "server", method: "DELETE", path: "/x", body: "k8s\x00..."},
		{name: "a creation for good", mode: "none", method: "POST", path: "/x", body: "{}", sent: true, wantBody: "{}"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var got *seen
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				got = &seen{method: r.Method, query: r.URL.RawQuery, body: string(body)}
			}))
			t.Cleanup(server.Close)
			err := send(t, tc.mode, tc.method, server.URL+tc.path, tc.body)
			var refused *cli.WriteRefusedError
			if !tc.sent {
				if !errors.As(err, &refused) || got != nil {
					t.Errorf("error %v, sent %v", err, got)
				}
				return
			}
			if err != nil || got == nil || got.query != tc.wantQuery || got.body != tc.wantBody {
				t.Errorf("error %v, sent %+v", err, got)
			}
		})
	}
}

// send sends a request through the transport of a command with --dry-run.
func send(t *testing.T, mode, method, url, body string) error {
	t.Helper()
	kube := cli.NewKube()
	cmd := &cobra.Command{Use: "x", RunE: func(*cobra.Command, []string) error { return nil }}
	kube.AddDryRunFlag(cmd)
	cmd.SetArgs([]string{"--dry-run=" + mode})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(kube.Guard(&rest.Config{Host: url}))
	if err != nil {
		t.Fatal(err)
	}
	var reader io.Reader = http.NoBody
	if body != "" {
		reader = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, reader)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	return err
}

type colour string

func TestEnumTakesOnlyItsChoices(t *testing.T) {
	t.Parallel()
	value, list := colour("red"), []colour(nil)
	one := cli.NewEnum(&value, map[string]colour{"rouge": "red"}, "red", "blue")
	many := cli.NewEnumSlice(&list, map[string]colour{"rouge": "red"}, "red", "blue")
	if err := errors.Join(one.Set("blue"), one.Set("rouge"), many.Set("blue,rouge"), many.Set("red")); err != nil {
		t.Fatal(err)
	}
	if value != "red" || len(list) != 2 {
		t.Errorf("%s, %v", value, list)
	}
	for _, err := range []error{one.Set("green"), one.Set(""), many.Set("red,green")} {
		if err == nil || !strings.Contains(err.Error(), "must be one of red, blue") {
			t.Errorf("error %v", err)
		}
	}
}

func TestTimeoutTakesSecondsToo(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]time.Duration{"300": 5 * time.Minute, "90s": 90 * time.Second, "0": 0} {
		var timeout cli.Timeout
		if err := timeout.Set(in); err != nil || time.Duration(timeout) != want {
			t.Errorf("%s: %s, %v", in, timeout.String(), err)
		}
	}
	for _, in := range []string{"", "soon", "-1", "-5s"} {
		var timeout cli.Timeout
		if timeout.Set(in) == nil {
			t.Errorf("%q was taken", in)
		}
	}
}

type item struct {
	Name string `json:"name"`
	Note string `json:"note"`
}

// itemKind has items stand for objects of a namespace.
var itemKind = cli.Kind[item]{Name: "Item", Ref: func(i item) cli.Ref { return cli.RefTo("item.example.com", "ns", i.Name, time.Time{}) }}

const listYAML = `apiVersion: cli.open-cluster-management.io/v1
items:
- apiVersion: cli.open-cluster-management.io/v1
  kind: Item
  metadata:
    name: a
    namespace: ns
  name: a
  note: <1>
- apiVersion: cli.open-cluster-management.io/v1
  kind: Item
  metadata:
    name: b
    namespace: ns
  name: b
  note: ""
kind: ItemList
`

func TestPrintList(t *testing.T) {
	t.Parallel()
	items := []item{{"a", "<1>"}, {"b", ""}}
	columns := []cli.Column[item]{
		{Header: "name", Value: func(i item) string { return i.Name }},
		{Header: "note", Wide: true, Value: func(i item) string { return i.Note }},
	}
	for format, want := range map[string]string{
		"table":                     "NAME\na\nb\n",
		"wide":                      "NAME  NOTE\na     <1>\nb     -\n",
		"name":                      "item.example.com/a\nitem.example.com/b\n",
		"yaml":                      listYAML,
		"jsonpath={.items[0].note}": "<1>",
		"jsonpath=.items[*].name":   "a b",
		"jsonpath={.items[":         "",
		"jsonpath=items[1].name":    "b",

		"go-template={{range .items}}{{.name}};{{end}}": "a;b;",
		"go-template={{.nosuch}}":                       "<no value>",
		"jsonpath={.items[0].metadata.name}{.nosuch}":   "a",
		"go-template={{range":                           "",

		"custom-columns=N:.name,WHAT:{.note},X:nosuch": "N  WHAT  X\na  <1>   <none>\nb        <none>\n",
		"custom-columns=N:.items[":                     "",
		"custom-columns=name":                          "",
		"custom-columns":                               "",
	} {
		out := cli.ListOutput()
		var printed bytes.Buffer
		err := out.Set(format)
		if err == nil {
			err = cli.PrintList(&printed, out, itemKind, items, columns)
		}
		if (err != nil) != (want == "") || want != "" && printed.String() != want {
			t.Errorf("%s: %q, %v", format, printed.String(), err)
		}
	}
	var printed bytes.Buffer
	out := cli.ListOutput()
	if err := errors.Join(out.Set("json"), cli.PrintList(&printed, out, itemKind, nil, columns)); err != nil {
		t.Fatal(err)
	}
	var list map[string]any
	if err := json.Unmarshal(printed.Bytes(), &list); err != nil || list["items"] == nil {
		t.Errorf("an empty list is no list: %s", printed.String())
	}
}

func TestProgressWithoutATerminalIsOneLinePerStep(t *testing.T) {
	t.Parallel()
	var talk bytes.Buffer
	clk := clocktesting.NewFakeClock(time.Unix(0, 0))
	env := cli.Env{IOStreams: genericiooptions.IOStreams{ErrOut: &talk}, Clock: clk}
	failure := errors.New("no")
	err := env.Progress().Step(t.Context(), "Doing it", func(_ context.Context, say cli.Say) error {
		say("waiting for %s", "x")
		say("waiting for %s", "x")
		clk.Step(3 * time.Second)
		return failure
	})
	if !errors.Is(err, failure) {
		t.Errorf("error %v", err)
	}
	if got, want := talk.String(), "Doing it ...\n    waiting for x\nFAIL Doing it (3s)\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestSecretFilesAreTheOwnersOnly(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("old and longer"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := cli.WriteSecretFile(file, []byte("new")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if data, err := cli.ReadFile(file); err != nil || string(data) != "new" {
		t.Errorf("%q, %v", data, err)
	}
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}

// TestTakenPort: a port that somebody else listens on is no cluster that is away.
func TestTakenPort(t *testing.T) {
	t.Parallel()
	var listen net.ListenConfig
	taken, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	_, err = listen.Listen(t.Context(), "tcp", taken.Addr().String())
	want := "the address " + taken.Addr().String() + " cannot be listened on"
	if got := cli.Explain(fmt.Errorf("health: %w", err)); got == nil || !strings.Contains(got.Error(), want) {
		t.Errorf("got %v, want %q", got, want)
	}
}

// TestTablesFit: a default table fits 80 columns and a wide one 160, whatever the sentence
// in it, and a wide table has no column without a value.
func TestTablesFit(t *testing.T) {
	t.Parallel()
	items := []item{{"cluster1", strings.Repeat("é is wrong; ", 40)}, {"cluster2", ""}}
	columns := []cli.Column[item]{
		{Header: "name", Value: func(i item) string { return i.Name }},
		{Header: "nothing", Wide: true, Value: func(item) string { return "" }},
		{Header: "some", Wide: true, Value: func(i item) string { return strings.TrimPrefix(i.Name, "cluster2") }},
		{Header: "age", Value: func(item) string { return "5m" }},
		{Header: "reason", Rest: true, Value: func(i item) string { return i.Note }},
	}
	for format, want := range map[string]struct {
		header string
		width  int
	}{
		"table": {"NAME AGE REASON", 80},
		"wide":  {"NAME SOME AGE REASON", 160},
	} {
		lines := strings.Split(printed(t, format, items, columns, nil), "\n")
		if got := strings.Join(strings.Fields(lines[0]), " "); got != want.header {
			t.Errorf("%s: header %q, want %q", format, got, want.header)
		}
		if got := utf8.RuneCountInString(lines[1]); got > want.width || got < want.width-10 || !strings.HasSuffix(lines[1], "...") {
			t.Errorf("%s: %d columns, want %d: %q", format, got, want.width, lines[1])
		}
	}
}

// printed is what a command prints of items with flags.
func printed(t *testing.T, format string, items []item, columns []cli.Column[item], flags map[string]string) string {
	t.Helper()
	var text bytes.Buffer
	out, cmd := cli.ListOutput(), &cobra.Command{}
	out.AddTo(cmd)
	if err := cmd.Flags().Set("output", format); err != nil {
		t.Fatal(err)
	}
	for name, value := range flags {
		if err := cmd.Flags().Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	if err := cli.PrintList(&text, out, itemKind, items, columns); err != nil {
		return "error: " + err.Error()
	}
	return text.String()
}

func TestListsSort(t *testing.T) {
	t.Parallel()
	items := []item{{"b", "10Gi"}, {"c", "512Mi"}, {"a", "9Gi"}}
	for by, want := range map[string]string{
		".metadata.name": "item.example.com/a\nitem.example.com/b\nitem.example.com/c\n",
		"{.note}":        "item.example.com/c\nitem.example.com/a\nitem.example.com/b\n",
		"name":           "item.example.com/a\nitem.example.com/b\nitem.example.com/c\n",
		".nosuch":        "error: --sort-by: no item has the field .nosuch",
	} {
		if got := printed(t, "name", items, nil, map[string]string{"sort-by": by}); got != want {
			t.Errorf("%s: %q, want %q", by, got, want)
		}
	}
}

func TestListsWithoutHeaders(t *testing.T) {
	t.Parallel()
	columns := []cli.Column[item]{{Header: "name", Value: func(i item) string { return i.Name }}}
	for _, format := range []string{"table", "custom-columns=N:.name"} {
		if got := printed(t, format, []item{{"a", ""}}, columns, map[string]string{"no-headers": "true"}); got != "a\n" {
			t.Errorf("%s: %q", format, got)
		}
	}
}

// TestDurationsAndSeconds: what lasts takes seconds and durations, whatever its flag is.
func TestDurationsAndSeconds(t *testing.T) {
	t.Parallel()
	var (
		life    time.Duration
		seconds int64
		short   int32
	)
	child := &cobra.Command{Use: "child"}
	child.Flags().DurationVar(&life, "life", 0, "")
	child.Flags().Int64Var(&seconds, "token-seconds", 0, "")
	child.Flags().Int32Var(&short, "cert-seconds", 0, "")
	root := &cobra.Command{Use: "root"}
	root.AddCommand(child)
	cli.Durations(root)
	for flag, values := range map[string]map[string]string{
		"life":          {"90": "1m30s", "24h": "24h0m0s", "0": "0s", "soon": "", "1.5": ""},
		"token-seconds": {"90": "90", "24h": "86400", "0": "0", "-90s": "-90", "1500ms": "", "soon": ""},
		"cert-seconds":  {"90": "90", "24h": "86400", "900000h": ""},
	} {
		for text, want := range values {
			err := child.Flags().Set(flag, text)
			if got := child.Flags().Lookup(flag).Value.String(); (err != nil) != (want == "") || err == nil && got != want {
				t.Errorf("--%s=%s: %s, %v", flag, text, got, err)
			}
		}
	}
}
