package controlplane

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strconv"
)

// Programs of a control plane, in the order they are started in. The names are
// those that localkube knows them by.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
)

const (
	serviceRange = "10.96.0.0/16"
	// kubernetesService is the first address of serviceRange, which the API
	// server gives to the Service "kubernetes".
	kubernetesService = "10.96.0.1"
	// issuer is the issuer of kubeadm and kind.
	issuer = "https://kubernetes.default.svc.cluster.local"
)

// Sockets of etcd, relative to the state directory: the path of a Unix socket
// may not be longer than 108 bytes, and every program runs in that directory.
const (
	EtcdSocket     = "etcd.sock"
	etcdPeerSocket = "etcd-peer.sock"
)

// etcdDir is where etcd keeps its data.
const etcdDir = "etcd"

// disabledControllers have no purpose here: there are no clouds, volumes or node
// address ranges; for the endpoint controllers see the package documentation. The names
// predate Kubernetes 1.28; newer releases know them as aliases.
const disabledControllers = "*,bootstrapsigner,tokencleaner," +
	"-endpoint,-endpointslice,-endpointslicemirroring," +
	"-attachdetach,-persistentvolume-binder,-persistentvolume-expander,-ephemeral-volume," +
	"-pvc-protection,-pv-protection,-nodeipam,-horizontalpodautoscaling"

func (c *ControlPlane) pki(name string) string { return filepath.Join("pki", name) }

func (c *ControlPlane) etcdArgs() []string {
	return []string{
		"--name=etcd",
		"--data-dir=" + etcdDir,
		"--listen-client-urls=unix://" + EtcdSocket,
		"--listen-peer-urls=unix://" + etcdPeerSocket,
		// No client uses the advertised address, but the flags require one.
		"--advertise-client-urls=http://localhost:2379",
		"--initial-advertise-peer-urls=http://localhost:2380",
		"--initial-cluster=etcd=http://localhost:2380",
		// A crash of the machine may lose the cluster; a crash of a process
		// loses nothing.
		"--unsafe-no-fsync",
		"--auto-compaction-mode=periodic",
		"--auto-compaction-retention=1h",
		"--log-level=warn",
	}
}

func (c *ControlPlane) apiServerArgs() []string {
	args := []string{
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(c.port.port),
		"--permit-port-sharing=true",
		// There is one API server, and its loopback address is no valid endpoint.
		"--endpoint-reconciler-type=none",
		"--etcd-servers=unix://" + EtcdSocket,
		"--client-ca-file=" + c.pki("ca.crt"),
		"--tls-cert-file=" + c.pki("apiserver.crt"),
		"--tls-private-key-file=" + c.pki("apiserver.key"),
		"--kubelet-certificate-authority=" + c.pki("ca.crt"),
		"--kubelet-client-certificate=" + c.pki("kubelet-client.crt"),
		"--kubelet-client-key=" + c.pki("kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=" + cmp.Or(c.config.Issuer, issuer),
		"--service-account-key-file=" + c.pki("sa.pub"),
		"--service-account-signing-key-file=" + c.pki("sa.key"),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		// Its finalizers are removed by controllers that do not run here.
		"--disable-admission-plugins=StorageObjectInUseProtection",
		"--enable-bootstrap-token-auth=true",
		"--service-cluster-ip-range=" + serviceRange,
		"--allow-privileged=true",
		"--profiling=false",
	}
	if c.config.EgressSocket != "" {
		args = append(args, "--egress-selector-config-file="+egressFile)
	}
	return append(args, c.config.APIServerArgs...)
}

func (c *ControlPlane) controllerManagerArgs() []string {
	ca, key := c.pki("ca.crt"), c.pki("ca.key")
	args := []string{
		"--kubeconfig=" + kubeconfigFile(ControllerManager),
		"--leader-elect=false",
		"--secure-port=0",
		"--controllers=" + disabledControllers,
		"--use-service-account-credentials=true",
		"--root-ca-file=" + ca,
		"--service-account-private-key-file=" + c.pki("sa.key"),
		"--service-cluster-ip-range=" + serviceRange,
		// A node that is silent is on a machine that is busy or was suspended.
		"--node-monitor-grace-period=5m",
		"--profiling=false",
	}
	signers := []string{"kubelet-serving", "kubelet-client", "legacy-unknown", "kube-apiserver-client"}
	if c.config.NoClientSigner {
		signers = signers[:1]
	}
	for _, signer := range signers {
		args = append(args,
			fmt.Sprintf("--cluster-signing-%s-cert-file=%s", signer, ca),
			fmt.Sprintf("--cluster-signing-%s-key-file=%s", signer, key))
	}
	if c.config.CertDuration > 0 {
		args = append(args, "--cluster-signing-duration="+c.config.CertDuration.String())
	}
	return args
}

func (c *ControlPlane) schedulerArgs() []string {
	return []string{
		"--kubeconfig=" + kubeconfigFile(Scheduler),
		"--leader-elect=false",
		"--secure-port=0",
		"--profiling=false",
	}
}

func kubeconfigFile(program string) string { return program + ".kubeconfig" }
