// Package views draws the panel: templ pages with their props, and every URL
// of it. It owns how things look and where they live, and must know nothing of
// the domain: package web turns domain values into the props declared here.
//
// A page is a function that takes its props and returns a templ.Component, for
// example Tasks(TasksProps). Parts that refresh by themselves stand inside
// live(name); Render answers either the whole page or only the parts that a
// request asked for by name in the X-Fragment header.
//
// Nothing here writes a style attribute, an inline script or a link that came
// from data without passing templ's URL check, so that the panel runs under a
// Content-Security-Policy of 'self' alone.
package views
