package tree

import (
	"go/parser"
	"go/token"
	"regexp"
	"strings"
)

// sharedPath is a home folder that is the same on every machine: Homebrew on
// Linux installs into it, whoever the user is.
const sharedPath = "/home/linuxbrew"

// machinePath matches absolute paths that exist on one person's or one build's
// machine: home folders and work folders.
var machinePath = regexp.MustCompile(`(?:^|[^\w./~$}-])(/(?:home|Users|root|work|workspaces?)/[\w.-]+|[A-Z]:\\Users\\\w+)`)

// registryHost matches hosts that packages are fetched from. Where a build
// fetches from is a setting of the machine it runs on.
var registryHost = regexp.MustCompile(`(?i)\b(?:(?:proxy|sum|index)\.golang\.org|goproxy\.(?:io|cn)|registry\.(?:npmjs\.org|yarnpkg\.com)|npm\.pkg\.github\.com|pypi\.(?:org|python\.org)|files\.pythonhosted\.org|(?:static\.|index\.)?crates\.io|rubygems\.org|repo1?\.maven\.(?:apache\.)?org|(?:deb|security|ftp)\.debian\.org|(?:archive|security)\.ubuntu\.com|dl-cdn\.alpinelinux\.org|registry-1\.docker\.io|ghcr\.io|quay\.io)\b`)

// marker matches the words that mark unfinished work; issue is what makes one
// acceptable.
var (
	marker = regexp.MustCompile(`(?:^|[^\w.])(TODO|FIXME|XXX)\b`)
	issue  = regexp.MustCompile(`#\d+`)
)

// checkWords judges the lines of one file.
func checkWords(name string, content []byte) []Finding {
	var findings []Finding
	for i, line := range strings.Split(string(content), "\n") {
		if found := machinePath.FindStringSubmatch(line); found != nil && found[1] != sharedPath {
			findings = append(findings, Finding{name, i + 1, "tree/machine-path: " + found[1] + " exists on one machine only; write a path relative to the module or read it from a setting"})
		}
		if found := registryHost.FindString(line); found != "" {
			findings = append(findings, Finding{name, i + 1, "tree/registry-host: " + found + " is a package registry; leave the choice to the machine's own settings"})
		}
	}
	lines := markedLines
	if strings.HasSuffix(name, ".go") {
		lines = markedComments
	}
	for _, found := range lines(name, content) {
		if !issue.MatchString(found.text) {
			findings = append(findings, Finding{name, found.line, "tree/marker: " + found.word + " names no issue; finish the work, or open an issue and write its number, as in (#12)"})
		}
	}
	return findings
}

// marked is a line with a word for unfinished work.
type marked struct {
	line       int
	word, text string
}

func markedLines(_ string, content []byte) []marked {
	return marks(string(content), 1)
}

// markedComments looks at the comments of a Go file only: in code the words may
// be names and test data. A file that does not parse is left to the compiler.
func markedComments(name string, content []byte) []marked {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	var found []marked
	for _, group := range file.Comments {
		for _, comment := range group.List {
			found = append(found, marks(comment.Text, fset.Position(comment.Pos()).Line)...)
		}
	}
	return found
}

// marks returns the marked lines of text, whose first line has the number first.
func marks(text string, first int) []marked {
	var found []marked
	for i, line := range strings.Split(text, "\n") {
		if match := marker.FindStringSubmatch(line); match != nil {
			found = append(found, marked{first + i, match[1], line})
		}
	}
	return found
}
