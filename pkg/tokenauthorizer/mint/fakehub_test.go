package mint_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/mint"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

// fakeHub answers the requests of a Minter without a network, so that a
// test can have a clock of its own. What a real API server does is tested with
// a real one.
type fakeHub struct {
	mu sync.Mutex
	// accounts are UIDs by "namespace/name".
	accounts map[string]string
	minted   int
	// status other than 0 is the answer to TokenRequests.
	status int
	// delay is how long a TokenRequest takes.
	delay time.Duration
	// skew is how far the hub's clock is ahead of ours.
	skew time.Duration
	// blind has the hub refuse watches.
	blind bool
	// opaque has the hub issue tokens that tell nothing.
	opaque bool
	// deleted, if set, has watches tell of accounts that go, and their UIDs.
	deleted chan [2]string
}

func (h *fakeHub) config() *rest.Config {
	return &rest.Config{Host: "http://hub.invalid", Transport: h}
}

func (h *fakeHub) set(change func(*fakeHub)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(h)
}

func (h *fakeHub) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.minted
}

func (h *fakeHub) RoundTrip(r *http.Request) (*http.Response, error) {
	parts := strings.Split(r.URL.Path, "/") // /api/v1/namespaces/NS/serviceaccounts/NAME/token
	switch {
	case r.Method == http.MethodPost && len(parts) == 8:
		return h.mint(r, parts[4], parts[6])
	case r.URL.Query().Get("watch") == "true":
		return h.watch(r, parts[4])
	default: // A list, which is for hubs that cannot begin a watch with what there is.
		return answer(r, http.StatusForbidden, metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: 403}), nil
	}
}

func (h *fakeHub) mint(r *http.Request, namespace, name string) (*http.Response, error) {
	h.mu.Lock()
	uid, ok := h.accounts[namespace+"/"+name]
	h.minted++
	serial, status, delay, skew, opaque := h.minted, h.status, h.delay, h.skew, h.opaque
	h.mu.Unlock()
	if delay > 0 {
		select {
		case <-r.Context().Done():
			return nil, r.Context().Err()
		case <-clock.RealClock{}.After(delay):
		}
	}
	if !ok {
		status = http.StatusNotFound
	}
	if status != 0 {
		return answer(r, status, metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Reason: reasons[status], Code: int32(status), Message: "no",
		}), nil
	}
	request := &authenticationv1.TokenRequest{}
	if err := json.NewDecoder(r.Body).Decode(request); err != nil {
		return nil, err
	}
	now := clock.RealClock{}.Now().Add(skew)
	life := time.Hour
	if request.Spec.ExpirationSeconds != nil {
		life = time.Duration(*request.Spec.ExpirationSeconds) * time.Second
	}
	request.Kind, request.APIVersion = "TokenRequest", "authentication.k8s.io/v1"
	request.Status.Token = token(fmt.Sprintf(`{"jti":"serial-%d","iat":%d,"kubernetes.io":{"serviceaccount":{"uid":%q}}}`, serial, now.Unix(), uid))
	if opaque {
		request.Status.Token = fmt.Sprintf("opaque-%d", serial)
	}
	request.Status.ExpirationTimestamp = metav1.NewTime(now.Add(life).Truncate(time.Second))
	return answer(r, http.StatusCreated, request), nil
}

var reasons = map[int]metav1.StatusReason{
	http.StatusNotFound:            metav1.StatusReasonNotFound,
	http.StatusForbidden:           metav1.StatusReasonForbidden,
	http.StatusTooManyRequests:     metav1.StatusReasonTooManyRequests,
	http.StatusUnauthorized:        metav1.StatusReasonUnauthorized,
	http.StatusUnprocessableEntity: metav1.StatusReasonInvalid,
	http.StatusInternalServerError: metav1.StatusReasonInternalError,
}

func token(payload string) string {
	return "eyJhbGciOiJSUzI1NiJ9." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln"
}

// delete deletes an account, of which watches tell.
func (h *fakeHub) delete(account string) {
	var uid string
	h.set(func(h *fakeHub) {
		uid = h.accounts[account]
		delete(h.accounts, account)
	})
	h.deleted <- [2]string{account, uid}
}

// watch answers with what there is, and then tells of what is deleted.
func (h *fakeHub) watch(r *http.Request, namespace string) (*http.Response, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.blind {
		return answer(r, http.StatusForbidden, metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: 403}), nil
	}
	type event struct {
		Type   string `json:"type"`
		Object any    `json:"object"`
	}
	meta := metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}
	object := func(account, uid, version string) map[string]any {
		_, name, _ := strings.Cut(account, "/")
		return map[string]any{
			"apiVersion": meta.APIVersion, "kind": meta.Kind,
			"metadata": map[string]any{"namespace": namespace, "name": name, "uid": uid, "resourceVersion": version},
		}
	}
	var events []event
	for account, uid := range h.accounts {
		if strings.HasPrefix(account, namespace+"/") {
			events = append(events, event{Type: "ADDED", Object: object(account, uid, "1")})
		}
	}
	events = append(events, event{Type: "BOOKMARK", Object: map[string]any{
		"apiVersion": meta.APIVersion, "kind": meta.Kind,
		"metadata": map[string]any{"resourceVersion": "1", "annotations": map[string]string{"k8s.io/initial-events-end": "true"}},
	}})
	reader, writer := io.Pipe()
	go func() {
		encoder := json.NewEncoder(writer)
		for _, e := range events {
			if encoder.Encode(e) != nil {
				return
			}
		}
		for {
			select {
			case gone := <-h.deleted:
				_ = encoder.Encode(event{Type: "DELETED", Object: object(gone[0], gone[1], "2")})
			case <-r.Context().Done():
				_ = writer.CloseWithError(r.Context().Err())
				return
			}
		}
	}()
	response := answer(r, http.StatusOK, nil)
	response.Body = reader
	return response, nil
}

func answer(r *http.Request, status int, body any) *http.Response {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return &http.Response{
		StatusCode: status, Request: r, ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(strings.NewReader(string(data))),
	}
}

// run starts a minter on the hub and ends it with the test.
func run(t *testing.T, c mint.Config, s mint.Settings) *mint.Minter {
	t.Helper()
	e, err := mint.New(c)
	if err != nil {
		t.Fatal(err)
	}
	e.Configure(s)
	var running sync.WaitGroup
	ctx, cancel := contextOf(t)
	running.Go(func() {
		if err := e.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return e
}

// settings are for clusters c1 and c2 with generation 1.
func settings(namespaces ...string) mint.Settings {
	return mint.Settings{Namespaces: namespaces, Clusters: map[string]mint.ClusterSettings{
		"c1": {Generation: 1}, "c2": {Generation: 1},
	}}
}

func ask(cluster string) mint.Request {
	return mint.Request{
		Subject: subject.Identity{Cluster: cluster, Account: subject.Account{Namespace: "app", Name: "worker", UID: "the-same"}},
		Target:  policy.Target{Namespace: "team", Name: "worker", Expiration: time.Hour}, Generation: 1,
	}
}
