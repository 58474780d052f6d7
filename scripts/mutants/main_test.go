package main

import "testing"

// TestTheListFitsTheTree: a mutant whose text is no longer in its file would be
// found out only by the hour that trying them all takes.
func TestTheListFitsTheTree(t *testing.T) {
	t.Chdir("../..")
	mutants, err := read("scripts/mutants/mutants.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(mutants) == 0 {
		t.Fatal("the list is empty")
	}
	for _, m := range mutants {
		if _, err := m.overlay(t.TempDir()); err != nil {
			t.Errorf("%s: %s: %v", m.File, m.Breaks, err)
		}
	}
}
