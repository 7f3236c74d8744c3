// Package ours tells the checks of internal/verify where in this module a
// package or a line stands: its path below the module, whether a file is a test,
// and whether a whole package exists for tests only. It knows no rule.
package ours

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// Module is the module path. The checks are about this module alone, so it is a
// constant and not read from go.mod.
const Module = "entrega"

// Rel returns the path of the analysed package below the module, such as
// "internal/store". An external test package (package x_test) answers with the
// path of the package that it tests. The module's root answers ".".
func Rel(pass *analysis.Pass) string {
	importPath := pass.Pkg.Path()
	if strings.HasSuffix(pass.Pkg.Name(), "_test") {
		importPath = strings.TrimSuffix(importPath, "_test")
	}
	if rel, ok := Below(importPath); ok {
		return rel
	}
	return importPath
}

// Files returns the files of the analysed package that people wrote or generated
// into the tree. It leaves out the main function that the go command writes into
// its cache for each test binary.
func Files(pass *analysis.Pass) []*ast.File {
	var files []*ast.File
	for _, file := range pass.Files {
		if strings.HasSuffix(pass.Fset.Position(file.Package).Filename, ".go") {
			files = append(files, file)
		}
	}
	return files
}

// Below splits an import path of this module: "entrega/web" gives "web", the
// module's root gives ".". It reports false for everybody else's paths.
func Below(importPath string) (string, bool) {
	if importPath == Module {
		return ".", true
	}
	return strings.CutPrefix(importPath, Module+"/")
}

// Under reports whether the path rel is root or lies below it.
func Under(rel, root string) bool {
	return rel == root || strings.HasPrefix(rel, root+"/")
}

// IsTestSupport reports whether a package exists only to serve tests, like
// internal/store/storetest and what lies below it. The name decides; the import
// rules then keep such a package out of the product, which is why other rules can
// treat it like a test.
func IsTestSupport(rel string) bool {
	return slices.ContainsFunc(strings.Split(rel, "/"), func(element string) bool {
		return strings.HasSuffix(element, "test") && element != "test"
	})
}

// IsTest reports whether pos stands in code that is compiled into tests only: a
// _test.go file, or any file of a test support package.
func IsTest(pass *analysis.Pass, pos token.Pos) bool {
	return IsTestFile(pass, pos) || IsTestSupport(Rel(pass))
}

// IsTestFile reports whether pos stands in a _test.go file.
func IsTestFile(pass *analysis.Pass, pos token.Pos) bool {
	return strings.HasSuffix(pass.Fset.Position(pos).Filename, "_test.go")
}
