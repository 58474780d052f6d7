package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of client-go
	_ "k8s.io/component-base/metrics/prometheus/version"  // the build's version as a metric
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	programs := map[string]func(){
		"etcd":                    func() { etcdmain.Main(os.Args) },
		"kube-apiserver":          func() { component(apiserver.NewAPIServerCommand()) },
		"kube-controller-manager": func() { component(controllermanager.NewControllerManagerCommand()) },
		"kube-scheduler":          func() { component(scheduler.NewSchedulerCommand()) },
		"kubectl":                 runKubectl,
	}
	run, ok := programs[filepath.Base(os.Args[0])]
	if !ok && len(os.Args) > 1 {
		os.Args = os.Args[1:]
		run, ok = programs[os.Args[0]]
	}
	if !ok {
		fmt.Fprintf(os.Stderr, "usage: localkube PROGRAM [FLAGS]\nPROGRAM is one of: %s\n",
			strings.Join(slices.Sorted(maps.Keys(programs)), ", "))
		os.Exit(2)
	}
	run()
}

// component runs a control plane program with its own logging and exit code.
func component(cmd *cobra.Command) { os.Exit(cli.Run(cmd)) }

// runKubectl leaves printing the error to kubectl's own way, as kubectl does.
func runKubectl() {
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
}
