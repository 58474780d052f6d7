// Package labelindex lets a cache find objects by the value of a label. A cache that is
// asked with a label selector looks at all objects that it has, so what is asked once
// for every cluster would take time with the square of their number.
package labelindex
