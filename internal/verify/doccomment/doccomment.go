// Package doccomment checks that each package says what it is for and that each
// exported identifier has a doc comment that starts with its name. Whether the
// comment is worth reading stays with the reviewer.
package doccomment

import (
	"go/ast"
	"go/token"
	"strings"

	"golang.org/x/tools/go/analysis"

	"entrega/internal/verify/ours"
)

// Analyzer reports packages without a package comment, and exported functions,
// methods, types, constants and variables without a doc comment. Tests and
// generated files are left alone; commands export nothing, so only their package
// comment is asked for. It works on syntax alone.
var Analyzer = &analysis.Analyzer{
	Name:             "doccomment",
	Doc:              "check for package comments and doc comments of exported identifiers",
	RunDespiteErrors: true,
	Run:              run,
}

func run(pass *analysis.Pass) (any, error) {
	var files []*ast.File
	described := false
	for _, file := range ours.Files(pass) {
		if ours.IsTestFile(pass, file.Name.Pos()) {
			continue
		}
		files = append(files, file)
		described = described || describes(file)
	}
	if len(files) == 0 {
		return nil, nil
	}
	if !described {
		first := files[0]
		for _, file := range files {
			if pass.Fset.Position(file.Pos()).Filename < pass.Fset.Position(first.Pos()).Filename {
				first = file
			}
		}
		pass.Reportf(first.Name.Pos(), "doccomment/package: package %s has no package comment; say above one package clause what it owns and what it must not know", first.Name.Name)
	}
	if pass.Pkg.Name() == "main" {
		return nil, nil
	}
	for _, file := range files {
		if !ast.IsGenerated(file) {
			checkFile(pass, file)
		}
	}
	return nil, nil
}

// describes reports whether file holds a package comment in the form that go doc
// shows: for a library, one that starts with "Package <name>".
func describes(file *ast.File) bool {
	text := file.Doc.Text()
	if file.Name.Name == "main" {
		return text != ""
	}
	return startsWith(text, "Package "+file.Name.Name)
}

func checkFile(pass *analysis.Pass, file *ast.File) {
	grouped := groupedFuncs(pass, file)
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if !grouped[decl] {
				checkFunc(pass, decl)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				checkSpec(pass, decl, spec)
			}
		}
	}
}

// groupedFuncs returns the functions that share a comment, as values in a group
// may: functions of one statement that follow a commented one, or a heading of
// their own, without a blank line between them. A list of URL builders reads
// better under one heading than under sixty sentences that repeat the names.
func groupedFuncs(pass *analysis.Pass, file *ast.File) map[*ast.FuncDecl]bool {
	line := func(pos token.Pos) int { return pass.Fset.Position(pos).Line }
	headings := map[int]bool{}
	for _, comment := range file.Comments {
		headings[line(comment.End())] = true
	}
	grouped := map[*ast.FuncDecl]bool{}
	headed, last := false, 0
	for _, decl := range file.Decls {
		start := line(decl.Pos())
		fn, ok := decl.(*ast.FuncDecl)
		switch {
		case !ok:
			headed = false
		case fn.Doc != nil:
			headed = true
		case start != last+1:
			// Not joined to what stands above: a heading two lines up starts a group.
			headed = headings[start-2] && last < start-2
		}
		last = line(decl.End())
		if ok && headed && fn.Doc == nil && fn.Recv == nil && fn.Body != nil && len(fn.Body.List) == 1 {
			grouped[fn] = true
		}
	}
	return grouped
}

// wellKnown lists methods whose meaning an interface of the standard library
// fixes; a comment could only repeat it.
var wellKnown = map[string]bool{
	"Error": true, "Unwrap": true, "String": true, "LogValue": true, "ServeHTTP": true,
	"Len": true, "Less": true, "Swap": true,
	"MarshalJSON": true, "UnmarshalJSON": true, "MarshalText": true, "UnmarshalText": true,
}

func checkFunc(pass *analysis.Pass, decl *ast.FuncDecl) {
	if !decl.Name.IsExported() {
		return
	}
	kind := "function"
	if decl.Recv != nil && len(decl.Recv.List) > 0 {
		kind = "method"
		receiver := receiverName(decl.Recv.List[0].Type)
		if !ast.IsExported(receiver) || wellKnown[decl.Name.Name] {
			return
		}
	}
	checkNamed(pass, kind, decl.Name, decl.Doc)
}

func checkSpec(pass *analysis.Pass, decl *ast.GenDecl, spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		if !spec.Name.IsExported() {
			return
		}
		doc := spec.Doc
		if doc == nil && !decl.Lparen.IsValid() {
			doc = decl.Doc
		}
		checkNamed(pass, "type", spec.Name, doc)
	case *ast.ValueSpec:
		// One comment may speak for a whole group of values.
		if decl.Doc != nil || spec.Doc != nil || spec.Comment != nil {
			return
		}
		for _, name := range spec.Names {
			if name.IsExported() {
				reportMissing(pass, name.Pos(), decl.Tok.String(), name.Name)
			}
		}
	}
}

// checkNamed wants a comment that starts with the name, or with an article and
// the name.
func checkNamed(pass *analysis.Pass, kind string, name *ast.Ident, doc *ast.CommentGroup) {
	text := doc.Text()
	if text == "" {
		reportMissing(pass, name.Pos(), kind, name.Name)
		return
	}
	for _, prefix := range []string{"", "A ", "An ", "The "} {
		if startsWith(text, prefix+name.Name) {
			return
		}
	}
	pass.Reportf(name.Pos(), "doccomment/exported: the comment of %s %s does not start with its name; write \"%s …\"", kind, name.Name, name.Name)
}

func reportMissing(pass *analysis.Pass, pos token.Pos, kind, name string) {
	pass.Reportf(pos, "doccomment/exported: exported %s %s has no doc comment; say what it promises, or do not export it", kind, name)
}

// startsWith reports whether text starts with the words of prefix, ending at a
// word's end.
func startsWith(text, prefix string) bool {
	rest, ok := strings.CutPrefix(text, prefix)
	return ok && (rest == "" || strings.ContainsAny(rest[:1], " \n\t,.:;()'"))
}

// receiverName returns the type name of a method's receiver, without pointer and
// type parameters.
func receiverName(expr ast.Expr) string {
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.ParenExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.IndexListExpr:
			expr = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}
