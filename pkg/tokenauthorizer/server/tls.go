package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/utils/clock"
)

// TLS says how connections are secured. Files are read again when they change,
// for the next connection.
type TLS struct {
	// CertFile and KeyFile hold the serving certificate and its key, in PEM.
	CertFile, KeyFile string
	// ClientCAFile holds the CAs of client certificates; without it the server requests
	// none.
	ClientCAFile string
	// ClientSANs are the allowed names of clients; a certificate must have one of them:
	// DNS names, URIs, IP or mail addresses. Empty means any client of the CAs.
	ClientSANs []string
}

// recheck is how long files are taken to be what they were.
const recheck = time.Second

// certificates holds what TLS connections need, as its files last had it in full.
type certificates struct {
	files TLS
	clock clock.PassiveClock
	log   logr.Logger

	mu      sync.Mutex
	checked time.Time
	read    [3][]byte
	config  *tls.Config
}

// loadCertificates reads the files, which must be complete at the start.
func loadCertificates(files TLS, clk clock.PassiveClock, log logr.Logger) (*certificates, error) {
	if files.CertFile == "" || files.KeyFile == "" {
		return nil, errors.New("TLS needs a certificate and its key: give both files, or neither")
	}
	if len(files.ClientSANs) > 0 && files.ClientCAFile == "" {
		return nil, errors.New("names of clients prove nothing without a CA: give the file with the clients' CA")
	}
	c := &certificates{files: files, clock: clk, log: log, checked: clk.Now()}
	if err := c.reload(); err != nil {
		return nil, err
	}
	return c, nil
}

// serverConfig returns a configuration that follows the files.
func (c *certificates) serverConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return c.current(), nil
		},
	}
}

// current returns the configuration of the files, or the last good one while
// they cannot be used.
func (c *certificates) current() *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.clock.Now(); now.Sub(c.checked) >= recheck {
		c.checked = now
		if err := c.reload(); err != nil {
			c.log.Error(err, "Keeping the serving certificate that was read before")
		}
	}
	return c.config
}

// reload takes over the files if they changed.
func (c *certificates) reload() error {
	var read [3][]byte
	for i, name := range []string{c.files.CertFile, c.files.KeyFile, c.files.ClientCAFile} {
		if name == "" {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		read[i] = data
	}
	if c.config != nil && slices.EqualFunc(read[:], c.read[:], bytes.Equal) {
		return nil
	}
	pair, err := tls.X509KeyPair(read[0], read[1])
	if err != nil {
		return fmt.Errorf("certificate %s with key %s: %w", c.files.CertFile, c.files.KeyFile, err)
	}
	config := &tls.Config{
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"h2", "http/1.1"},
		Certificates: []tls.Certificate{pair},
	}
	if c.files.ClientCAFile != "" {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(read[2]) {
			return fmt.Errorf("%s holds no CA certificate in PEM", c.files.ClientCAFile)
		}
		// verify rejects a client without a certificate on the gRPC port, as do the
		// HTTP handlers, apart from the exchange, which requires none.
		config.ClientAuth, config.ClientCAs = tls.VerifyClientCertIfGiven, pool
	}
	c.config, c.read = config, read
	return nil
}

// errClient is for a peer that did not prove a name that is allowed.
var errClient = errors.New("the client has no certificate with a name that is allowed")

// verify checks the client of a connection.
func (c *certificates) verify(state *tls.ConnectionState) error {
	if c == nil || c.files.ClientCAFile == "" {
		return nil
	}
	if state == nil || len(state.VerifiedChains) == 0 {
		return errClient
	}
	if len(c.files.ClientSANs) == 0 || slices.ContainsFunc(sans(state.PeerCertificates[0]), func(name string) bool {
		return slices.Contains(c.files.ClientSANs, name)
	}) {
		return nil
	}
	return errClient
}

func sans(cert *x509.Certificate) []string {
	names := slices.Concat(cert.DNSNames, cert.EmailAddresses)
	for _, uri := range cert.URIs {
		names = append(names, uri.String())
	}
	for _, ip := range cert.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

// transport is the security of gRPC connections: TLS, except on a Unix socket,
// which the rights of its file protect.
type transport struct {
	credentials.TransportCredentials

	plain        credentials.TransportCredentials
	certificates *certificates
}

func newTransport(c *certificates) transport {
	return transport{
		TransportCredentials: credentials.NewTLS(c.serverConfig()),
		plain:                insecure.NewCredentials(), certificates: c,
	}
}

// ServerHandshake implements credentials.TransportCredentials.
func (t transport) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if _, ok := conn.(*net.UnixConn); ok {
		return t.plain.ServerHandshake(conn)
	}
	secured, info, err := t.TransportCredentials.ServerHandshake(conn)
	if err != nil {
		return nil, nil, err
	}
	tlsInfo, ok := info.(credentials.TLSInfo)
	if !ok {
		return nil, nil, errors.Join(errClient, secured.Close())
	}
	if err := t.certificates.verify(&tlsInfo.State); err != nil {
		return nil, nil, errors.Join(err, secured.Close())
	}
	return secured, info, nil
}

// Clone implements credentials.TransportCredentials.
func (t transport) Clone() credentials.TransportCredentials {
	t.TransportCredentials = t.TransportCredentials.Clone()
	return t
}

// listenUnix listens at a path, in place of a socket that a process before left.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
		if err == nil {
			return nil, errors.Join(fmt.Errorf("another process serves at %s", path), conn.Close())
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	// The proxy usually runs as another user of the same group.
	if err := os.Chmod(path, 0o660); err != nil { //nolint:gosec // the socket is for the group
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}
