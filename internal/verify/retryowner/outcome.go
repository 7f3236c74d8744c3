package retryowner

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/cfg"
	"golang.org/x/tools/go/types/typeutil"
)

// outcome says which values a condition can have.
type outcome struct {
	canBeTrue, canBeFalse bool
}

var anything = outcome{true, true}

// evaluate returns which values cond can have when the error held in subject is
// not nil (failed) or nil. A nil subject stands for errors that are not held in a
// variable.
func (in *inspection) evaluate(cond ast.Expr, subject *types.Var, tags map[ast.Expr]ast.Expr, failed bool) outcome {
	if tag, ok := tags[cond]; ok {
		switch {
		case in.variable(tag) != subject:
			return anything
		case in.isNil(cond):
			return outcome{canBeTrue: !failed, canBeFalse: failed}
		}
		return outcome{canBeTrue: failed, canBeFalse: true}
	}
	switch cond := ast.Unparen(cond).(type) {
	case *ast.UnaryExpr:
		if cond.Op == token.NOT {
			x := in.evaluate(cond.X, subject, tags, failed)
			return outcome{canBeTrue: x.canBeFalse, canBeFalse: x.canBeTrue}
		}
	case *ast.BinaryExpr:
		return in.evaluateBinary(cond, subject, tags, failed)
	case *ast.CallExpr:
		tested := in.predicatedError(cond)
		fn := typeutil.StaticCallee(in.pass.TypesInfo, cond)
		isOrAs := fn != nil && (fn.FullName() == "errors.Is" || fn.FullName() == "errors.As")
		if tested != nil && isOrAs && !failed && in.variable(tested) == subject {
			return outcome{canBeFalse: true}
		}
	}
	return anything
}

func (in *inspection) evaluateBinary(cond *ast.BinaryExpr, subject *types.Var, tags map[ast.Expr]ast.Expr, failed bool) outcome {
	switch cond.Op {
	case token.LAND, token.LOR:
		x := in.evaluate(cond.X, subject, tags, failed)
		y := in.evaluate(cond.Y, subject, tags, failed)
		if cond.Op == token.LAND {
			return outcome{canBeTrue: x.canBeTrue && y.canBeTrue, canBeFalse: x.canBeFalse || y.canBeFalse}
		}
		return outcome{canBeTrue: x.canBeTrue || y.canBeTrue, canBeFalse: x.canBeFalse && y.canBeFalse}
	case token.EQL, token.NEQ:
		tested := in.comparedError(cond)
		if tested == nil || in.variable(tested) != subject {
			return anything
		}
		equal := outcome{canBeTrue: failed, canBeFalse: true}
		if in.isNil(cond.X) || in.isNil(cond.Y) {
			equal = outcome{canBeTrue: !failed, canBeFalse: failed}
		}
		if cond.Op == token.NEQ {
			return outcome{canBeTrue: equal.canBeFalse, canBeFalse: equal.canBeTrue}
		}
		return equal
	}
	return anything
}

// reach returns the blocks that can run after the test when its error is not nil
// (failed) or nil. As long as the variable keeps its value, later tests of it can
// only go the same way.
func (in *inspection) reach(test errorTest, failed bool) map[*cfg.Block]bool {
	type state struct {
		block *cfg.Block
		known bool
	}
	reached := map[*cfg.Block]bool{}
	seen := map[state]bool{}
	var queue []state
	leave := func(block *cfg.Block, known bool) {
		possible := anything
		if cond := condition(block); known && cond != nil {
			possible = in.evaluate(cond, test.subject, test.tags, failed)
		}
		for i, next := range block.Succs {
			taken := len(block.Succs) < 2 || (i == 0 && possible.canBeTrue) || (i == 1 && possible.canBeFalse)
			if to := (state{next, known}); taken && !seen[to] {
				seen[to] = true
				queue = append(queue, to)
			}
		}
	}
	leave(test.block, true)
	if test.subject == nil {
		// Nothing tells whether a later expression holds the same error.
		for i := range queue {
			queue[i].known = false
		}
	}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		reached[at.block] = true
		leave(at.block, at.known && !in.assigns(at.block, test.subject))
	}
	return reached
}

// assigns reports whether block gives the variable a new value.
func (in *inspection) assigns(block *cfg.Block, subject *types.Var) bool {
	found := false
	for _, node := range block.Nodes {
		ast.Inspect(node, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, left := range n.Lhs {
					found = found || in.variable(left) == subject
				}
			case *ast.ValueSpec:
				for _, name := range n.Names {
					found = found || in.pass.TypesInfo.Defs[name] == subject
				}
			case *ast.UnaryExpr:
				found = found || (n.Op == token.AND && in.variable(n.X) == subject)
			}
			return !found
		})
	}
	return found
}
