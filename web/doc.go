// Package web serves the panel and the JSON API: routes, sessions, who may see which page, errors, and the stream of hints. It
// is the only importer of echo.
//
// A panel handler reads domain values, and a function of a present_*.go file turns them into the props of a page in package
// views; only those files know both. Actions are POST and answered with 303 and a sentence, so that every page works without
// scripts. Rules of the domain are not here: this package asks, and errors.go alone turns refusals into pages.
package web
