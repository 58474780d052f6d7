// Package pages lists objects of any number page by page, so that never more than a
// few pages of them are in memory. It owns no error: that of the API server is returned.
package pages
