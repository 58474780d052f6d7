package get

import (
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/printable"
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

// branches are what a tree is drawn with: before a line, and before those below it.
type branches struct{ twig, stem, lastTwig, lastStem string }

// printTree prints a tree of clusters.
func printTree(env cli.Env, clusters []node) error {
	lines := branches{"├── ", "│   ", "└── ", "    "}
	if env.ASCII() {
		lines = branches{"|-- ", "|   ", "`-- ", "    "}
	}
	var b strings.Builder
	b.WriteString("<ManagedCluster>\n")
	lines.draw(&b, "", clusters)
	_, err := io.WriteString(env.Out, b.String())
	return err
}

// draw draws nodes behind what belongs to the nodes above them.
func (l branches) draw(b *strings.Builder, stem string, nodes []node) {
	for i, n := range nodes {
		twig, below := l.twig, l.stem
		if i == len(nodes)-1 {
			twig, below = l.lastTwig, l.lastStem
		}
		_, _ = fmt.Fprintln(b, strings.TrimRight(stem+twig+printable.Line(n.text), " "))
		l.draw(b, stem+below, n.below)
	}
}
