package bootstrap

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// ParseServer reads the URL of a hub's API server: https with a host, and
// perhaps a port and a path. A trailing slash is dropped. Every error is an
// *Error of kind BadServer.
func ParseServer(s string) (*url.URL, error) {
	bad := func(why string) error {
		return &Error{
			Kind:    BadServer,
			Problem: fmt.Sprintf("the hub API server %q is not a valid URL: %s", redact(s), why),
			Try:     "give it as https://HOST:PORT",
		}
	}
	u, err := url.Parse(s)
	if err != nil {
		return nil, bad("it cannot be parsed")
	}
	if why := notAServer(u); why != "" {
		return nil, bad(why)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = ""
	return u, nil
}

// notAServer says why a URL cannot be that of an API server.
func notAServer(u *url.URL) string {
	switch {
	case u.Scheme != "https":
		return "it must begin with https://"
	case u.Hostname() == "" || strings.ContainsAny(u.Host, " \t\r\n"):
		return "it names no host"
	case u.User != nil:
		return "it must not hold a user or password"
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "it must end with the path"
	}
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "the port is not a number from 1 to 65535"
		}
	}
	return ""
}

// redact drops the user part of what may be a URL with a password in it.
func redact(s string) string {
	if i := strings.LastIndex(s, "@"); i >= 0 {
		return "..." + s[i:]
	}
	return s
}

// LocalOnly returns why the server of a URL can be reached from one machine or
// from inside one cluster only, and therefore not by another managed cluster.
// The reason is empty when nothing speaks against it.
func LocalOnly(server string) (reason string) {
	u, err := url.Parse(server)
	if err != nil {
		return ""
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if ip := net.ParseIP(host); ip != nil {
		return localIP(ip)
	}
	switch {
	case host == "localhost" || strings.HasSuffix(host, ".localhost"):
		return "localhost leads every machine to itself"
	case host == "kubernetes" || host == "kubernetes.default" ||
		strings.HasSuffix(host, ".svc") || strings.Contains(host, ".svc."):
		return "a Service name is known inside its own cluster only"
	case host == "host.docker.internal" || strings.HasSuffix(host, "-control-plane"):
		return "a container's name is known on its own machine only"
	}
	return ""
}

func localIP(ip net.IP) (reason string) {
	switch {
	case ip.IsLoopback():
		return "a loopback address leads every machine to itself"
	case ip.IsUnspecified():
		return "an unspecified address leads nowhere"
	case ip.IsLinkLocalUnicast():
		return "a link-local address is valid on one network link only"
	}
	return ""
}
