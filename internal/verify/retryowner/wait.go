package retryowner

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"

	"golang.org/x/tools/go/cfg"
	"golang.org/x/tools/go/types/typeutil"

	"entrega/internal/verify/ours"
)

// wait is a place where the code lets time pass.
type wait struct {
	node   ast.Node
	block  *cfg.Block
	ticker bool
}

// waiters holds the functions of the package that wait for as long as they are
// told: their calls are waits.
type waiters map[*types.Func]bool

// waiterName matches functions of other packages that wait, by the names people
// give them.
var waiterName = regexp.MustCompile(`(?i)^(sleep|back_?off)`)

// findWaiters returns the declared functions with a time.Duration parameter that
// wait, themselves or through another of them.
func (in *inspection) findWaiters() waiters {
	found := waiters{}
	for grown := true; grown; {
		grown = false
		for _, file := range ours.Files(in.pass) {
			for _, decl := range file.Decls {
				decl, ok := decl.(*ast.FuncDecl)
				if !ok || decl.Body == nil {
					continue
				}
				fn, ok := in.pass.TypesInfo.Defs[decl.Name].(*types.Func)
				if !ok || found[fn] || !takesDuration(fn.Signature()) {
					continue
				}
				if in.waitsIn(decl.Body, found) {
					found[fn] = true
					grown = true
				}
			}
		}
	}
	return found
}

func takesDuration(signature *types.Signature) bool {
	for i := range signature.Params().Len() {
		if isNamed(signature.Params().At(i).Type(), "time", "Duration") {
			return true
		}
	}
	return false
}

// waitsIn reports whether the statements of body, without its function literals,
// hold a wait other than a ticker's.
func (in *inspection) waitsIn(body ast.Node, known waiters) bool {
	found := false
	inspectFlat(body, func(n ast.Node) {
		if is, ticker := in.isWait(n, known); is && !ticker {
			found = true
		}
	})
	return found
}

// findWaits returns the waits of one graph. What a select receives from is
// evaluated before the select, but the wait belongs to the case that it wakes:
// a case that returns is a deadline and not a pause.
func (in *inspection) findWaits(graph *cfg.CFG, body *ast.BlockStmt, known waiters) []wait {
	cases := map[ast.Stmt]*cfg.Block{}
	loops := map[ast.Expr]*cfg.Block{}
	for _, block := range graph.Blocks {
		switch block.Kind {
		case cfg.KindSelectCaseBody:
			if clause, ok := block.Stmt.(*ast.CommClause); ok && clause.Comm != nil {
				cases[clause.Comm] = block
			}
		case cfg.KindRangeLoop:
			if loop, ok := block.Stmt.(*ast.RangeStmt); ok {
				loops[loop.X] = block
			}
		}
	}
	var found []wait
	for _, block := range graph.Blocks {
		if !block.Live {
			continue
		}
		for _, node := range block.Nodes {
			in.addWaits(&found, node, homeOf(node, block, cases), known)
			x, ok := node.(ast.Expr)
			if loop := loops[x]; ok && loop != nil && in.isClock(x) {
				found = append(found, wait{node: x, block: loop, ticker: in.isTicker(x)})
			}
		}
	}
	return found
}

// homeOf returns the block that a node counts for.
func homeOf(node ast.Node, block *cfg.Block, cases map[ast.Stmt]*cfg.Block) *cfg.Block {
	if statement, ok := node.(ast.Stmt); ok && cases[statement] != nil {
		return cases[statement]
	}
	return block
}

func (in *inspection) addWaits(found *[]wait, node ast.Node, home *cfg.Block, known waiters) {
	switch node.(type) {
	case *ast.GoStmt, *ast.DeferStmt:
		// These wait elsewhere, or once.
		return
	}
	inspectFlat(node, func(n ast.Node) {
		if is, ticker := in.isWait(n, known); is {
			*found = append(*found, wait{node: n, block: home, ticker: ticker})
		}
	})
}

// isWait reports whether n itself lets time pass, and whether a ticker decides
// how long.
func (in *inspection) isWait(n ast.Node, known waiters) (is, ticker bool) {
	switch n := n.(type) {
	case *ast.UnaryExpr:
		if n.Op == token.ARROW && in.isClock(n.X) {
			return true, in.isTicker(n.X)
		}
	case *ast.CallExpr:
		switch callee := typeutil.Callee(in.pass.TypesInfo, n).(type) {
		case *types.Func:
			return callee.FullName() == "time.Sleep" || known[callee.Origin()] || waitsByName(callee.Name(), callee.Signature()), false
		case *types.Var:
			signature, ok := types.Unalias(callee.Type()).Underlying().(*types.Signature)
			return ok && waitsByName(callee.Name(), signature), false
		}
	}
	return false, false
}

// waitsByName reports whether a function called name, which answers nothing, an
// error or a bool, is one that waits: one called Backoff that answers a duration
// only computes.
func waitsByName(name string, signature *types.Signature) bool {
	if !waiterName.MatchString(name) {
		return false
	}
	results := signature.Results()
	for i := range results.Len() {
		result := results.At(i).Type()
		if !isError(result) && !types.Identical(result.Underlying(), types.Typ[types.Bool]) {
			return false
		}
	}
	return true
}

// isClock reports whether expr is a channel of instants, as of a timer, a ticker
// or time.After.
func (in *inspection) isClock(expr ast.Expr) bool {
	t := in.pass.TypesInfo.TypeOf(expr)
	if t == nil {
		return false
	}
	channel, ok := t.Underlying().(*types.Chan)
	return ok && isNamed(channel.Elem(), "time", "Time")
}

// isTicker reports whether the channel expr is a ticker's.
func (in *inspection) isTicker(expr ast.Expr) bool {
	switch expr := ast.Unparen(expr).(type) {
	case *ast.SelectorExpr:
		t := in.pass.TypesInfo.TypeOf(expr.X)
		return t != nil && isNamed(t, "time", "Ticker")
	case *ast.CallExpr:
		fn := typeutil.StaticCallee(in.pass.TypesInfo, expr)
		return fn != nil && fn.FullName() == "time.Tick"
	}
	return false
}

// inspectFlat calls visit for each node below root that runs when root does: it
// stays out of function literals.
func inspectFlat(root ast.Node, visit func(ast.Node)) {
	ast.Inspect(root, func(n ast.Node) bool {
		if _, ok := n.(*ast.FuncLit); ok {
			return false
		}
		if n != nil {
			visit(n)
		}
		return true
	})
}
