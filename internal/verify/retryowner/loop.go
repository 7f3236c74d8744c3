package retryowner

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/cfg"
	"golang.org/x/tools/go/types/typeutil"

	"entrega/internal/verify/ours"
)

// checkLoops looks for a second owner of retries in its plainest form: a cycle of
// the control flow on which an error survives and time is waited for. It reports
// at the wait. Only jobs may do so; the ledger and the worker live there.
//
// A ticker is no wait for an error by itself: it goes on at its pace whatever
// happens. It counts when success is what ends the loop. An error that a called
// function keeps to itself is out of sight here and stays with the reviewer.
func (in *inspection) checkLoops() {
	if in.under("jobs") {
		return
	}
	waits := in.findWaiters()
	for _, file := range ours.Files(in.pass) {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Body != nil {
					in.checkBody(n.Body, waits)
				}
			case *ast.FuncLit:
				in.checkBody(n.Body, waits)
			}
			return true
		})
	}
}

// checkBody judges one function body; the function literals in it are judged on
// their own.
func (in *inspection) checkBody(body *ast.BlockStmt, waits waiters) {
	if !hasLoop(body) {
		return
	}
	graph := cfg.New(body, in.mayReturn)
	flow := newFlow(graph)
	found := in.findWaits(graph, body, waits)
	if len(found) == 0 {
		return
	}
	reported := map[ast.Node]bool{}
	for _, test := range in.findErrorTests(graph, body) {
		survivors := in.reach(test, true)
		recovers := in.reach(test, false)[test.block]
		for _, wait := range found {
			if reported[wait.node] || !survivors[wait.block] || !flow.reaches(wait.block, test.block) {
				continue
			}
			if wait.ticker && recovers {
				continue
			}
			reported[wait.node] = true
			in.add(wait.node.Pos(), ruleLoop, "this loop waits here and goes on after an error, which makes a second retry owner; return the error and let the kind's policy decide when to try again")
		}
	}
}

// hasLoop reports whether body may hold a cycle; most bodies do not, and need no
// graph.
func hasLoop(body *ast.BlockStmt) bool {
	found := false
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ForStmt, *ast.RangeStmt:
			found = true
		case *ast.BranchStmt:
			found = found || n.Tok == token.GOTO
		}
		return !found
	})
	return found
}

// noReturn lists functions and methods that end the goroutine or the process.
var noReturn = map[string]bool{
	"os.Exit": true, "runtime.Goexit": true,
	"log.Fatal": true, "log.Fatalf": true, "log.Fatalln": true,
	"log.Panic": true, "log.Panicf": true, "log.Panicln": true,
	"(*testing.common).Fatal": true, "(*testing.common).Fatalf": true, "(*testing.common).FailNow": true,
	"(*testing.common).Skip": true, "(*testing.common).Skipf": true, "(*testing.common).SkipNow": true,
	"(testing.TB).Fatal": true, "(testing.TB).Fatalf": true, "(testing.TB).FailNow": true,
	"(testing.TB).Skip": true, "(testing.TB).Skipf": true, "(testing.TB).SkipNow": true,
}

// mayReturn tells the graph builder which calls end the flow.
func (in *inspection) mayReturn(call *ast.CallExpr) bool {
	switch callee := typeutil.Callee(in.pass.TypesInfo, call).(type) {
	case *types.Builtin:
		return callee.Name() != "panic"
	case *types.Func:
		return !noReturn[callee.FullName()]
	}
	return true
}

// flow answers which block can come after which.
type flow struct {
	after map[*cfg.Block]map[*cfg.Block]bool
}

func newFlow(graph *cfg.CFG) *flow {
	return &flow{after: make(map[*cfg.Block]map[*cfg.Block]bool, len(graph.Blocks))}
}

// reaches reports whether to can run after from; a block reaches itself without
// a cycle, for what it holds runs in order.
func (f *flow) reaches(from, to *cfg.Block) bool {
	seen, ok := f.after[from]
	if !ok {
		seen = map[*cfg.Block]bool{from: true}
		queue := []*cfg.Block{from}
		for len(queue) > 0 {
			block := queue[0]
			queue = queue[1:]
			for _, next := range block.Succs {
				if !seen[next] {
					seen[next] = true
					queue = append(queue, next)
				}
			}
		}
		f.after[from] = seen
	}
	return seen[to]
}
