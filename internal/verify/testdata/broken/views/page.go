// Package views shows.
package views

func Page() {}
