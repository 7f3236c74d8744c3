package retryowner

import (
	"go/ast"
	"go/types"

	"entrega/internal/verify/ours"
)

// handlerPackages hold code that runs inside an attempt, so any function of
// theirs that is given a context must pass that one on.
var handlerPackages = []string{"webhooks", "mailer", "jobs", "internal/events", "internal/alerts", "internal/search"}

// checkHandlers looks for contexts made from nothing inside a handler: the
// attempt's deadline, cancellation and trace would not reach the wire.
func (in *inspection) checkHandlers(file *ast.File) {
	everyContext := in.under(handlerPackages...)
	var visit func(n ast.Node, inside bool)
	visit = func(root ast.Node, inside bool) {
		ast.Inspect(root, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Body != nil {
					visit(n.Body, inside || in.isHandler(n.Type, everyContext))
				}
				return false
			case *ast.FuncLit:
				visit(n.Body, inside || in.isHandler(n.Type, everyContext))
				return false
			case *ast.Ident:
				if inside {
					in.checkContext(n)
				}
			}
			return true
		})
	}
	visit(file, false)
}

// isHandler reports whether a function of this type has a *jobs.Job parameter
// or, where everyContext holds, a context.
func (in *inspection) isHandler(signature *ast.FuncType, everyContext bool) bool {
	for _, field := range signature.Params.List {
		t := in.pass.TypesInfo.TypeOf(field.Type)
		if t == nil {
			continue
		}
		if everyContext && isNamed(t, "context", "Context") {
			return true
		}
		if _, ok := types.Unalias(t).(*types.Pointer); ok && isNamed(t, ours.Module+"/jobs", "Job") {
			return true
		}
	}
	return false
}

func (in *inspection) checkContext(ident *ast.Ident) {
	fn, ok := in.pass.TypesInfo.Uses[ident].(*types.Func)
	if !ok || fn.Pkg() == nil || fn.Pkg().Path() != "context" {
		return
	}
	if fn.Name() == "Background" || fn.Name() == "TODO" {
		in.add(ident.Pos(), ruleContext, "context.%s inside a handler cuts the wire off from the attempt; pass the handler's context on, or context.WithoutCancel of it for what must outlive the attempt", fn.Name())
	}
}
