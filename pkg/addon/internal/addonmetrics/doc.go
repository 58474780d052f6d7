// Package addonmetrics owns how the add-on manager counts add-ons: how many are ready in
// some respect, and which are not, with the reason in their condition. It decides neither.
package addonmetrics
