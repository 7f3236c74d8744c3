// Package imports checks which package may import which: the direction between
// our own packages, the leaves that import none of them, the libraries that have
// one importer, and the test support that must stay out of the product. The
// heights stand in table.go; how a package uses what it imports is the business
// of other checks.
package imports

import (
	"go/ast"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"

	"entrega/internal/verify/ours"
)

// Analyzer reports each import that the architecture refuses, at the line of the
// import. It needs no types, so it also speaks about code that does not compile.
var Analyzer = &analysis.Analyzer{
	Name:             "imports",
	Doc:              "check the direction of imports between our packages and the reserved libraries",
	RunDespiteErrors: true,
	Run:              run,
}

func run(pass *analysis.Pass) (any, error) {
	rel := ours.Rel(pass)
	from, ok := placeOf(rel)
	if !ok {
		for _, file := range ours.Files(pass) {
			pass.Reportf(file.Name.Pos(), "imports/table: package %s has no level yet; add it to the table in %s, as low as it can stand", rel, tableFile)
		}
		return nil, nil
	}
	for _, file := range ours.Files(pass) {
		test := ours.IsTestFile(pass, file.Name.Pos())
		if test && ours.Under(rel, "cmd/entrega") {
			// The end-to-end tests live there and look at every layer.
			continue
		}
		external := test && strings.HasSuffix(file.Name.Name, "_test")
		checker := checker{pass: pass, rel: rel, from: from, test: test, external: external}
		for _, spec := range file.Imports {
			checker.check(spec)
		}
	}
	return nil, nil
}

// checker judges the imports of one file of the package at rel.
type checker struct {
	pass *analysis.Pass
	rel  string
	from Place
	test bool
	// external is a test from outside its package.
	external bool
}

func (c checker) check(spec *ast.ImportSpec) {
	path, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return
	}
	if target, ok := ours.Below(path); ok {
		c.checkOurs(spec, target)
		return
	}
	for _, r := range reservations {
		if ours.Under(path, r.prefix) && !ours.Under(c.rel, r.owner) {
			c.pass.Reportf(spec.Pos(), "imports/owner: only %s imports %s, because %s; call a function of %s instead", r.owner, path, r.why, r.owner)
			return
		}
	}
	if c.from.Path == "views" && !c.test && !isStandard(path) && !allowedInViews(path) {
		c.pass.Reportf(spec.Pos(), "imports/views: views imports templ and the standard library only, not %s; compute the value in web/present and pass it in the props", path)
	}
}

// checkOurs judges an import of the package at the module-relative path target.
func (c checker) checkOurs(spec *ast.ImportSpec, target string) {
	to, ok := placeOf(target)
	if !ok {
		c.pass.Reportf(spec.Pos(), "imports/table: %s imports %s, which has no level yet; add it to the table in %s, as low as it can stand", c.rel, target, tableFile)
		return
	}
	if ours.IsTestSupport(target) && !c.test && !ours.IsTestSupport(c.rel) {
		c.pass.Reportf(spec.Pos(), "imports/test-support: %s serves tests; import it from a _test.go file or from a package whose name ends in \"test\"", target)
		return
	}
	switch {
	case to.Path == c.from.Path:
	case c.external && to.Path == schemaOwner && c.from.Level >= Store:
		// Such a test needs a database at its schema, and imports nothing that imports it back.
	case to.Level == Tool:
		c.pass.Reportf(spec.Pos(), "imports/tool: %s checks the tree and is no part of the product; move what you need out of it", target)
	case c.from.Level == Tool:
		c.pass.Reportf(spec.Pos(), "imports/tool: %s judges the other packages and imports none of them, not even %s; read its source instead", c.rel, target)
	case c.from.Level == Leaf:
		c.pass.Reportf(spec.Pos(), "imports/leaf: %s is a leaf and imports none of our packages, not even %s; take the value as a parameter", c.rel, target)
	case to.Level == c.from.Level:
		c.pass.Reportf(spec.Pos(), "imports/direction: %s and %s stand side by side and do not import each other; move what both need below, or let a package above pair them", c.rel, target)
	case to.Level > c.from.Level:
		c.pass.Reportf(spec.Pos(), "imports/direction: imports point down only, and %s stands above %s; move the code up, or take a small interface or function as a parameter", target, c.rel)
	}
}

// isStandard reports whether path belongs to the standard library, whose first
// path element never holds a dot.
func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

func allowedInViews(path string) bool {
	for _, prefix := range viewsMayImport {
		if ours.Under(path, prefix) {
			return true
		}
	}
	return false
}
