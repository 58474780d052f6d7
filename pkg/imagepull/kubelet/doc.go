// Package kubelet pulls images with ServiceAccount tokens without Secrets: as a
// credential provider plugin of the kubelet (KEP-4412). The kubelet requests a token of
// the Pod's ServiceAccount, for one audience, and passes it to the plugin, which returns
// it as the password for the registry.
//
// It owns the response to the kubelet, the kubelet's configuration for that, and the
// permission that nodes need. The kubelet's wire formats are k8s.io/kubelet's.
//
// Its invariant: a token appears in the response only, never in an error, and the cache
// duration never exceeds its validity.
package kubelet
