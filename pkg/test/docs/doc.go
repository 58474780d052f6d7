// Package docs has tests keep the user guide true: it reads pages, finds in the
// code what they must document, and checks samples of alert rules. It knows
// nothing of what a page is about.
package docs
