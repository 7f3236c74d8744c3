package jobs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// document is a policy and where its parts stand in their file.
type document struct {
	Policy
	file string
	// lineOf is by path, such as "waits.2"; the document's first line is at "".
	lineOf map[string]int
}

// line is that of a part, or the document's first for one that was left out.
func (d document) line(path string) int {
	if line, ok := d.lineOf[path]; ok {
		return line
	}
	return d.lineOf[""]
}

func (d document) errorAt(f fault) error {
	return &PolicyError{File: d.file, Line: d.line(f.path), Sentence: f.sentence}
}

// readDocuments reads a file of YAML documents, each a policy, and checks each by itself. It returns those that are valid;
// the error joins all faults of the others.
func readDocuments(file string, data []byte) ([]document, error) {
	tree, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, syntaxError(file, err)
	}
	var documents []document
	var errs []error
	for _, doc := range tree.Docs {
		if _, directive := doc.Body.(*ast.DirectiveNode); directive {
			continue
		}
		if doc.Body == nil {
			// The parser passes over all that follows an empty document, which must not go unnoticed.
			if doc.Start != nil {
				errs = append(errs, &PolicyError{file, doc.Start.Position.Line, "nothing follows this line before the next document: take it out."})
			}
			continue
		}
		r := &documentReader{document: document{file: file, lineOf: map[string]int{}}}
		r.read(doc.Body)
		if len(r.errs) > 0 {
			errs = append(errs, r.errs...)
			continue
		}
		p := r.Policy.withDefaults()
		faults := p.faults()
		for _, f := range faults {
			errs = append(errs, r.errorAt(f))
		}
		if len(faults) == 0 {
			r.Policy = p.sealed()
			documents = append(documents, r.document)
		}
	}
	return documents, errors.Join(errs...)
}

func syntaxError(file string, err error) error {
	var syntax *yaml.SyntaxError
	if errors.As(err, &syntax) && syntax.Token != nil {
		return &PolicyError{File: file, Line: syntax.Token.Position.Line, Sentence: syntax.Message + "."}
	}
	return &PolicyError{File: file, Line: 1, Sentence: "this is no YAML: " + err.Error()}
}

// documentReader fills in a document from its tree. It reads the tree by hand, because a decoder that fills in structs
// forgets the lines, and a fault without its line is of little use in a file of twenty policies.
type documentReader struct {
	document
	errs []error
}

// fields says how to read the value of each key that a mapping may have.
type fields map[string]func(path string, n ast.Node)

func (r *documentReader) read(body ast.Node) {
	r.lineOf[""] = body.GetToken().Position.Line
	p := &r.Policy
	r.mapping("", body, fields{
		"kind":     r.text(&p.Kind),
		"profile":  r.text(&p.Profile),
		"projects": r.list(func(path string, n ast.Node) { r.text(grow(&p.Projects))(path, n) }),
		"attempts": r.whole(&p.Attempts, 1),
		"waits":    r.list(func(path string, n ast.Node) { r.duration(grow(&p.Waits), 0)(path, n) }),
		"backoff": func(path string, n ast.Node) {
			p.Backoff = &Backoff{}
			r.mapping(path, n, fields{
				"base":   r.duration(&p.Backoff.Base, time.Millisecond),
				"factor": r.number(&p.Backoff.Factor),
				"cap":    r.duration(&p.Backoff.Cap, time.Millisecond),
			}, "base", "factor")
		},
		"jitter": r.jitter,
		"timeout": func(path string, n ast.Node) {
			r.mapping(path, n, fields{
				"total":   r.duration(&p.Timeout.Total, time.Millisecond),
				"connect": r.duration(&p.Timeout.Connect, time.Millisecond),
			})
		},
		"horizon": r.duration(&p.Horizon, time.Millisecond),
		"retry_after": func(path string, n ast.Node) {
			r.mapping(path, n, fields{"cap": r.duration(&p.RetryAfterCap, minRetryAfterCap)})
		},
		"disable_endpoint": func(path string, n ast.Node) {
			r.mapping(path, n, fields{
				"failing_for":       r.duration(&p.Disable.FailingFor, time.Millisecond),
				"failures_in_a_row": r.whole(&p.Disable.FailuresInARow, 1),
			})
		},
		"classes": r.classes,
	}, "kind", "attempts")
}

// grow makes room for one more element and returns its address.
func grow[T any](s *[]T) *T {
	*s = append(*s, *new(T))
	return &(*s)[len(*s)-1]
}

func (r *documentReader) fail(n ast.Node, format string, args ...any) {
	r.errs = append(r.errs, &PolicyError{File: r.file, Line: n.GetToken().Position.Line, Sentence: fmt.Sprintf(format, args...)})
}

// entries lists a mapping's keys and values, or reports that n is none. The parser has refused a key that is there twice.
func (r *documentReader) entries(path string, n ast.Node, each func(key string, value *ast.MappingValueNode)) bool {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		r.fail(n, "%s must be keys and values.", orDocument(path))
		return false
	}
	for _, entry := range m.Values {
		key, ok := scalar(entry.Key)
		if !ok {
			r.fail(entry.Key, "this key of %s is no plain text.", orDocument(path))
			continue
		}
		r.lineOf[join(path, key)] = entry.Key.GetToken().Position.Line
		each(key, entry)
	}
	return true
}

func (r *documentReader) mapping(path string, n ast.Node, known fields, needed ...string) {
	isMapping := r.entries(path, n, func(key string, entry *ast.MappingValueNode) {
		read, ok := known[key]
		if !ok {
			r.fail(entry.Key, "%s has no key %q; its keys are %s.", orDocument(path), key, joinSorted(known))
			return
		}
		read(join(path, key), entry.Value)
	})
	for _, key := range needed {
		if _, ok := r.lineOf[join(path, key)]; isMapping && !ok {
			r.fail(n, "%s has no %s.", orDocument(path), key)
		}
	}
}

func join(path, key string) string {
	return strings.Join(slices.DeleteFunc([]string{path, key}, func(s string) bool { return s == "" }), ".")
}

func orDocument(path string) string {
	if path == "" {
		return "a policy"
	}
	return path
}
