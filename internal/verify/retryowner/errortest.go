package retryowner

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/cfg"
)

// errorTest is a branch that depends on whether an error is nil.
type errorTest struct {
	block *cfg.Block
	// subject is the tested variable, or nil when the error is not held in one.
	subject *types.Var
	// tags maps the cases of a switch over an error to that error.
	tags map[ast.Expr]ast.Expr
}

// findErrorTests returns the branches of graph that look at an error, one for
// each error that a condition looks at.
func (in *inspection) findErrorTests(graph *cfg.CFG, body *ast.BlockStmt) []errorTest {
	tags := map[ast.Expr]ast.Expr{}
	inspectFlat(body, func(n ast.Node) {
		statement, ok := n.(*ast.SwitchStmt)
		if !ok || statement.Tag == nil || !in.isErrorExpr(statement.Tag) {
			return
		}
		for _, clause := range statement.Body.List {
			for _, expr := range clause.(*ast.CaseClause).List {
				tags[expr] = statement.Tag
			}
		}
	})
	var found []errorTest
	for _, block := range graph.Blocks {
		cond := condition(block)
		if !block.Live || cond == nil {
			continue
		}
		seen := map[*types.Var]bool{}
		for _, tested := range in.testedErrors(cond, tags) {
			subject := in.variable(tested)
			if !seen[subject] {
				seen[subject] = true
				found = append(found, errorTest{block: block, subject: subject, tags: tags})
			}
		}
	}
	return found
}

// condition returns the condition at the end of a block with two ways out, or
// nil when the ways out depend on something else.
func condition(block *cfg.Block) ast.Expr {
	if len(block.Succs) != 2 || len(block.Nodes) == 0 {
		return nil
	}
	cond, _ := block.Nodes[len(block.Nodes)-1].(ast.Expr)
	return cond
}

// testedErrors returns the errors that cond compares with nil or hands to a
// predicate such as errors.Is.
func (in *inspection) testedErrors(cond ast.Expr, tags map[ast.Expr]ast.Expr) []ast.Expr {
	if tag, ok := tags[cond]; ok {
		return []ast.Expr{tag}
	}
	var found []ast.Expr
	switch cond := ast.Unparen(cond).(type) {
	case *ast.UnaryExpr:
		if cond.Op == token.NOT {
			return in.testedErrors(cond.X, tags)
		}
	case *ast.BinaryExpr:
		switch cond.Op {
		case token.LAND, token.LOR:
			return append(in.testedErrors(cond.X, tags), in.testedErrors(cond.Y, tags)...)
		case token.EQL, token.NEQ:
			if tested := in.comparedError(cond); tested != nil {
				found = append(found, tested)
			}
		}
	case *ast.CallExpr:
		if tested := in.predicatedError(cond); tested != nil {
			found = append(found, tested)
		}
	}
	return found
}

// comparedError returns the error that the comparison is about, preferring the
// left side; nil when it is about something else.
func (in *inspection) comparedError(comparison *ast.BinaryExpr) ast.Expr {
	switch {
	case in.isNil(comparison.Y) && in.isErrorExpr(comparison.X):
		return comparison.X
	case in.isNil(comparison.X) && in.isErrorExpr(comparison.Y):
		return comparison.Y
	case in.isErrorExpr(comparison.X) && in.isErrorExpr(comparison.Y):
		return comparison.X
	}
	return nil
}

// predicatedError returns the error that a call answering a bool is asked about.
func (in *inspection) predicatedError(call *ast.CallExpr) ast.Expr {
	for _, arg := range call.Args {
		if in.isErrorExpr(arg) {
			return arg
		}
	}
	return nil
}

// variable returns the variable that expr names, or nil.
func (in *inspection) variable(expr ast.Expr) *types.Var {
	ident, ok := ast.Unparen(expr).(*ast.Ident)
	if !ok {
		return nil
	}
	variable, _ := in.pass.TypesInfo.ObjectOf(ident).(*types.Var)
	return variable
}

func (in *inspection) isErrorExpr(expr ast.Expr) bool {
	t := in.pass.TypesInfo.TypeOf(expr)
	return t != nil && !in.isNil(expr) && isError(t)
}

var errorInterface = types.Universe.Lookup("error").Type().Underlying().(*types.Interface)

// isError reports whether t is error or a type that implements it.
func isError(t types.Type) bool {
	return types.Implements(t, errorInterface)
}
