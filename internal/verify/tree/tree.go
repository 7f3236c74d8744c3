// Package tree checks the files of the repository as text: what must not stand in
// any of them, and which documents must exist and be true about the tree. It
// reads files only and knows nothing of Go packages.
package tree

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Finding is one broken rule at a line of a file. File is slash-separated and
// relative to the root of the tree.
type Finding struct {
	File    string
	Line    int
	Message string
}

// Check reads the tree and returns its findings in the order of files and lines.
// It fails only when a file cannot be read.
func Check(tree fs.FS) ([]Finding, error) {
	var findings []Finding
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("walk tree: %w", err)
		}
		if entry.IsDir() {
			if skipped(name) {
				return fs.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		content, err := fs.ReadFile(tree, name)
		if err != nil {
			return fmt.Errorf("read file: %w", err)
		}
		if isText(content) {
			findings = append(findings, checkWords(name, content)...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	documents, err := checkDocuments(tree)
	if err != nil {
		return nil, err
	}
	findings = append(findings, documents...)
	slices.SortStableFunc(findings, func(a, b Finding) int {
		if order := strings.Compare(a.File, b.File); order != 0 {
			return order
		}
		return a.Line - b.Line
	})
	return findings, nil
}

// skipped reports whether a folder holds nothing of ours: version control, the
// private Postgres, tools and binaries. Of the hidden folders only those that
// drive the builds are ours.
func skipped(name string) bool {
	base := path.Base(name)
	if base == "." || base == ".ci" || base == ".github" {
		return false
	}
	return strings.HasPrefix(base, ".") || name == "bin" || base == "node_modules"
}

// isText tells pictures, binaries and profiles from text by the zero byte that
// they all have early on.
func isText(content []byte) bool {
	return !bytes.Contains(content[:min(len(content), 8<<10)], []byte{0})
}
