// Package kubelet serves the part of a kubelet's HTTPS interface that
// "kubectl logs" needs. It answers only the API server, which it knows by its
// client certificate. What local nodes cannot do (exec, attach, port-forward)
// is refused with a sentence.
package kubelet
