// Package environ computes what a container's process is started with: its
// environment, command and arguments, by the rules of the Kubernetes API.
//
// It asks for Secrets and ConfigMaps through the Objects it is given and keeps
// nothing. Service environment variables other than KUBERNETES_SERVICE_HOST and
// _PORT are not made, as in a Pod with enableServiceLinks: false.
package environ
