// Package roots has certificates of public authorities for systems without any, such as our
// image. It never replaces those that a system has.
package roots
