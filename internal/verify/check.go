package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"entrega/internal/verify/boundary"
	"entrega/internal/verify/doccomment"
	"entrega/internal/verify/imports"
	"entrega/internal/verify/ours"
	"entrega/internal/verify/retryowner"
	"entrega/internal/verify/tree"
)

// analyzers are the checks that look at packages. None of them exports facts, so
// the packages of others are needed as types only.
var analyzers = []*analysis.Analyzer{
	imports.Analyzer,
	retryowner.Analyzer,
	boundary.Analyzer,
	doccomment.Analyzer,
}

// loadMode asks for our own syntax and types; what we import comes from the
// build cache, which keeps the check to a few seconds.
const loadMode = packages.LoadSyntax | packages.NeedForTest

// check loads the module in dir once, tests included, and returns the findings
// of all checks without repetitions, in the order of files and lines.
func check(ctx context.Context, dir string) ([]tree.Finding, error) {
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find module: %w", err)
	}
	pkgs, err := load(ctx, root)
	if err != nil {
		return nil, err
	}

	findings := loadErrors(root, pkgs)
	analysed, err := analyse(root, pkgs)
	if err != nil {
		return nil, err
	}
	findings = append(findings, analysed...)
	ofTree, err := tree.Check(os.DirFS(root))
	if err != nil {
		return nil, fmt.Errorf("check tree: %w", err)
	}
	findings = append(findings, ofTree...)

	slices.SortFunc(findings, func(a, b tree.Finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, strings.Compare(a.Message, b.Message))
	})
	return slices.Compact(findings), nil
}

// load returns the packages of the module at root, each once.
func load(ctx context.Context, root string) ([]*packages.Package, error) {
	const everything = "./..."
	pkgs, err := packages.Load(&packages.Config{Context: ctx, Mode: loadMode, Dir: root, Tests: true}, everything)
	if err != nil {
		return nil, fmt.Errorf("load packages: %w", err)
	}
	for _, pkg := range pkgs {
		// A pattern that cannot be resolved comes back as a package of that name.
		if pkg.PkgPath == everything && len(pkg.Errors) > 0 {
			return nil, fmt.Errorf("load packages: %w", pkg.Errors[0])
		}
	}
	if len(pkgs) == 0 {
		return nil, errors.New("load packages: there are none; run this from the module's root")
	}
	return chooseVariants(pkgs), nil
}

// chooseVariants keeps one package for each set of files. With its tests a
// package holds all that it holds without them, so the plain one is left out
// where both exist; so are the generated main packages of test binaries and the
// packages that were only built again for somebody else's test.
func chooseVariants(pkgs []*packages.Package) []*packages.Package {
	withTests := map[string]bool{}
	for _, pkg := range pkgs {
		if pkg.ForTest == pkg.PkgPath {
			withTests[pkg.PkgPath] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(pkgs), func(pkg *packages.Package) bool {
		switch pkg.ForTest {
		case "":
			return withTests[pkg.PkgPath] || (pkg.Name == "main" && strings.HasSuffix(pkg.PkgPath, ".test"))
		case pkg.PkgPath, strings.TrimSuffix(pkg.PkgPath, "_test"):
			return false
		}
		return true
	})
}

// loadErrors returns what keeps packages from compiling: the checks that need
// types have not seen those packages.
func loadErrors(root string, pkgs []*packages.Package) []tree.Finding {
	var findings []tree.Finding
	for _, pkg := range pkgs {
		for _, problem := range pkg.Errors {
			if problem.Pos == "" && len(pkg.Errors) > 1 {
				// The compiler's headline over the errors that follow.
				continue
			}
			file, line := splitPosition(root, problem.Pos)
			if file == "" {
				file = strings.TrimPrefix(pkg.PkgPath, ours.Module+"/")
			}
			message, _, _ := strings.Cut(problem.Msg, "\n")
			findings = append(findings, tree.Finding{File: file, Line: line, Message: "load: this does not compile, so it could not be checked: " + message})
		}
	}
	return findings
}

// splitPosition reads the "file:line:column" of a loading error; "-" and "" stand
// for no position.
func splitPosition(root, position string) (file string, line int) {
	parts := strings.Split(position, ":")
	if len(parts) < 2 {
		return "", 1
	}
	line, err := strconv.Atoi(parts[1])
	if err != nil {
		return "", 1
	}
	return relative(root, parts[0]), line
}

// analyse runs the analyzers. One that could not run because its package does not
// compile says nothing here, for the loading error has been reported.
func analyse(root string, pkgs []*packages.Package) ([]tree.Finding, error) {
	graph, err := checker.Analyze(analyzers, pkgs, nil)
	if err != nil {
		return nil, fmt.Errorf("analyse packages: %w", err)
	}
	var findings []tree.Finding
	for _, action := range graph.Roots {
		if action.Err != nil {
			if len(action.Package.Errors) > 0 || action.Package.IllTyped {
				continue
			}
			return nil, fmt.Errorf("run %s on %s: %w", action.Analyzer.Name, action.Package.PkgPath, action.Err)
		}
		for _, diagnostic := range action.Diagnostics {
			position := action.Package.Fset.Position(diagnostic.Pos)
			findings = append(findings, tree.Finding{File: relative(root, position.Filename), Line: position.Line, Message: diagnostic.Message})
		}
	}
	return findings, nil
}

// relative returns the slash-separated path of file below root, or file itself
// when it lies elsewhere.
func relative(root, file string) string {
	rel, err := filepath.Rel(root, file)
	if err != nil || !filepath.IsLocal(rel) {
		return file
	}
	return filepath.ToSlash(rel)
}
