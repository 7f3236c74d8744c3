// Package migrations holds Entrega's schema as numbered SQL files, forward only. It owns the files and nothing else:
// store.Migrate runs them, after River's own migrator, which package jobs calls.
//
// The runner (tern) evaluates each file as a Go template first, so a literal pair of opening braces must not appear.
package migrations

import "embed"

// FS holds the numbered files, 001_… onwards, without gaps.
//
//go:embed *.sql
var FS embed.FS
