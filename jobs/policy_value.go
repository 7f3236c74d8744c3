package jobs

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// decimalPattern leaves out what a number may look like elsewhere: hexadecimal, exponents, infinity.
var decimalPattern = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)

func (r *documentReader) list(each func(path string, n ast.Node)) func(string, ast.Node) {
	return func(path string, n ast.Node) {
		seq, ok := n.(*ast.SequenceNode)
		if !ok || len(seq.Values) == 0 {
			r.fail(n, "%s must be a list of at least one value.", path)
			return
		}
		for i, value := range seq.Values {
			at := join(path, strconv.Itoa(i))
			r.lineOf[at] = value.GetToken().Position.Line
			each(at, value)
		}
	}
}

func (r *documentReader) text(to *string) func(string, ast.Node) {
	return func(path string, n ast.Node) {
		value, ok := scalar(n)
		if !ok || value == "" {
			r.fail(n, "%s must be text.", path)
			return
		}
		*to = value
	}
}

func (r *documentReader) whole(to *int, least int) func(string, ast.Node) {
	return func(path string, n ast.Node) {
		value, _ := scalar(n)
		number, err := strconv.Atoi(value)
		switch {
		case err != nil:
			r.fail(n, "%s is %q: it must be a whole number.", path, value)
		case number < least:
			r.fail(n, "%s is %d: it must be at least %d.", path, number, least)
		default:
			*to = number
		}
	}
}

func (r *documentReader) number(to *float64) func(string, ast.Node) {
	return func(path string, n ast.Node) {
		value, _ := scalar(n)
		if !decimalPattern.MatchString(value) {
			r.fail(n, "%s is %q: it must be a number, such as 2 or 1.5.", path, value)
			return
		}
		*to, _ = strconv.ParseFloat(value, 64) // The pattern leaves nothing to fail but a huge number, which is infinite.
	}
}

func (r *documentReader) duration(to *time.Duration, least time.Duration) func(string, ast.Node) {
	return func(path string, n ast.Node) {
		value, _ := scalar(n)
		d, err := time.ParseDuration(value)
		switch {
		case err != nil:
			r.fail(n, "%s is %q: it must be a duration with its unit, such as 30s, 5m or 10h.", path, value)
		case d < 0:
			r.fail(n, "%s is %s: it must not be negative.", path, value)
		case d < least:
			r.fail(n, "%s is %s: it must be at least %s.", path, value, shortDuration(least))
		default:
			*to = d
		}
	}
}

func (r *documentReader) jitter(path string, n ast.Node) {
	value, _ := scalar(n)
	if value == "full" {
		r.Jitter.Full = true
		return
	}
	percent, ok := strings.CutSuffix(value, "%")
	if !ok || !decimalPattern.MatchString(percent) {
		r.fail(n, "%s is %q: it must be full or a percentage, such as 10%%.", path, value)
		return
	}
	// The exponent moves the point exactly; a division by 100 would round once more.
	r.Jitter.Fraction, _ = strconv.ParseFloat(percent+"e-2", 64)
}

func (r *documentReader) classes(path string, n ast.Node) {
	r.Classes = map[string]Action{}
	r.entries(path, n, func(class string, entry *ast.MappingValueNode) {
		var action string
		r.text(&action)(join(path, class), entry.Value)
		r.Classes[class] = Action(action)
	})
}

// scalar is the text of a plain value. A null, an anchor, an alias, a tag or a block has none.
func scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.IntegerNode, *ast.FloatNode:
		return n.GetToken().Value, true
	default:
		return "", false
	}
}
