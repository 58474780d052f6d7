package get

import (
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
)

// treeFormat prints a block per cluster, as clusteradm does.
const treeFormat cli.Format = "tree"

// node is a line of a tree, and those below it.
type node struct {
	text  string
	below []node
}

// leaf is a line with a name and a value.
func leaf(name, value string) node { return node{text: "<" + name + "> " + value} }

// printTree prints a tree of clusters.
func printTree(w io.Writer, clusters []node) error {
	var b strings.Builder
	b.WriteString("<ManagedCluster>\n")
	draw(&b, "", clusters)
	_, err := io.WriteString(w, b.String())
	return err
}

// draw draws nodes behind what belongs to the nodes above them.
func draw(b *strings.Builder, stem string, nodes []node) {
	for i, n := range nodes {
		twig, below := "├── ", "│   "
		if i == len(nodes)-1 {
			twig, below = "└── ", "    "
		}
		_, _ = fmt.Fprintln(b, strings.TrimRight(stem+twig+cli.Printable(n.text), " "))
		draw(b, stem+below, n.below)
	}
}
