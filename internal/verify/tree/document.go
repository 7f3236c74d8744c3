package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// The documents that the tree must hold.
const (
	changelog    = "CHANGELOG.md"
	architecture = "docs/architecture.md"
)

// sourcePath matches a source file named with its folder. Inside a link to
// elsewhere it follows more of the URL, and so a slash, a dot or a colon.
var sourcePath = regexp.MustCompile(`(?:^|[^\w./:-])((?:[\w-][\w.-]*/)+[\w.-]+\.(?:go|templ|sql))\b`)

// checkDocuments reports missing documents, and files that the architecture
// document names though the tree does not have them.
func checkDocuments(tree fs.FS) ([]Finding, error) {
	var findings []Finding
	if _, err := fs.Stat(tree, changelog); errors.Is(err, fs.ErrNotExist) {
		findings = append(findings, Finding{changelog, 1, "tree/changelog: CHANGELOG.md is missing; write what changed for users, newest first"})
	} else if err != nil {
		return nil, fmt.Errorf("look for document: %w", err)
	}

	content, err := fs.ReadFile(tree, architecture)
	if errors.Is(err, fs.ErrNotExist) {
		return append(findings, Finding{architecture, 1, "tree/architecture: docs/architecture.md is missing; write the walk of one delivery with the names of the files it passes"}), nil
	}
	if err != nil {
		return nil, fmt.Errorf("read document: %w", err)
	}
	for i, line := range strings.Split(string(content), "\n") {
		for _, found := range sourcePath.FindAllStringSubmatch(line, -1) {
			_, err := fs.Stat(tree, found[1])
			if errors.Is(err, fs.ErrNotExist) {
				findings = append(findings, Finding{architecture, i + 1, "tree/architecture: " + found[1] + " is not in the tree; name the file that does this now"})
			} else if err != nil {
				return nil, fmt.Errorf("look for source file: %w", err)
			}
		}
	}
	return findings, nil
}
