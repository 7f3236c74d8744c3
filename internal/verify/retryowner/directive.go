package retryowner

import (
	"go/token"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"

	"entrega/internal/verify/ours"
)

// directivePrefix starts an exception; gofmt leaves comments of this form alone.
const directivePrefix = "//entrega:allow"

// directive is one exception, as written.
type directive struct {
	pos    token.Pos
	rule   string
	reason string
	used   bool
}

// place is a line of a file.
type place struct {
	file string
	line int
}

// directives holds the exceptions of one package by the line they stand on.
type directives map[place][]*directive

func parseDirectives(pass *analysis.Pass) directives {
	found := directives{}
	for _, file := range ours.Files(pass) {
		for _, group := range file.Comments {
			for _, comment := range group.List {
				rest, ok := strings.CutPrefix(comment.Text, directivePrefix)
				if !ok || (rest != "" && rest[0] != ' ' && rest[0] != '\t') {
					continue
				}
				// A second comment on the line is no part of the reason.
				rest, _, _ = strings.Cut(rest, "//")
				rule, reason, _ := strings.Cut(strings.TrimSpace(rest), " ")
				position := pass.Fset.Position(comment.Pos())
				at := place{position.Filename, position.Line}
				found[at] = append(found[at], &directive{pos: comment.Pos(), rule: rule, reason: strings.TrimSpace(reason)})
			}
		}
	}
	return found
}

// silence reports whether a directive for rule stands on the line of position or
// on the line above, and marks it as used. One without a reason silences too: it
// is reported once, for itself.
func (d directives) silence(position token.Position, rule string) bool {
	silenced := false
	for _, line := range []int{position.Line, position.Line - 1} {
		for _, directive := range d[place{position.Filename, line}] {
			if directive.rule == rule {
				directive.used = true
				silenced = true
			}
		}
	}
	return silenced
}

// reportUseless reports the directives that are malformed, and those that had
// nothing to silence, so that an exception disappears with its cause.
func (d directives) reportUseless(pass *analysis.Pass) {
	for _, onLine := range d {
		for _, directive := range onLine {
			switch {
			case !slices.Contains(rules, directive.rule):
				pass.Reportf(directive.pos, "retryowner/allow: there is no rule %q; name one of %s", directive.rule, strings.Join(rules, ", "))
			case directive.reason == "":
				pass.Reportf(directive.pos, "retryowner/allow: this exception from %s gives no reason; write why a second owner does no harm here", directive.rule)
			case !directive.used:
				pass.Reportf(directive.pos, "retryowner/allow: this exception from %s silences nothing; remove it", directive.rule)
			}
		}
	}
}
