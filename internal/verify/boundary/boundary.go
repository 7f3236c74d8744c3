// Package boundary checks the two things that only one package of the product
// may do, whatever it imports: internal/store begins transactions, so that each
// has one place that commits, rolls back and maps errors; and cmd/entrega reads
// the environment, so that every setting is in its typed Config. Tests may do
// both: they interleave transactions by hand and set up machines.
package boundary

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"regexp"
	"strings"

	"golang.org/x/tools/go/analysis"

	"entrega/internal/verify/ours"
)

// Analyzer reports each transaction begun outside internal/store and each read
// of the environment outside cmd/entrega and internal/verify. It looks at what a
// name resolves to, so method values and renamed imports are found as well.
var Analyzer = &analysis.Analyzer{
	Name: "boundary",
	Doc:  "check that only internal/store begins transactions and only cmd/entrega reads the environment",
	Run:  run,
}

func run(pass *analysis.Pass) (any, error) {
	rel := ours.Rel(pass)
	mayBegin := ours.Under(rel, "internal/store")
	mayRead := ours.Under(rel, "cmd/entrega") || ours.Under(rel, "internal/verify")
	for _, file := range ours.Files(pass) {
		if ours.IsTest(pass, file.Name.Pos()) {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				fn, ok := pass.TypesInfo.Uses[n].(*types.Func)
				if !ok {
					break
				}
				if !mayBegin && begins(fn) {
					reportBegin(pass, n.Pos(), fn.Name())
				}
				if !mayRead && readsEnvironment(fn) {
					pass.Reportf(n.Pos(), "boundary/environment: only cmd/entrega reads the environment, and %s.%s does; add a field to its Config and take the value as a parameter", fn.Pkg().Name(), fn.Name())
				}
			case *ast.CallExpr:
				if !mayBegin && sendsBegin(pass, n) {
					reportBegin(pass, n.Pos(), "this statement")
				}
			}
			return true
		})
	}
	return nil, nil
}

func reportBegin(pass *analysis.Pass, pos token.Pos, what string) {
	pass.Reportf(pos, "boundary/begin: only internal/store begins transactions, and %s does; use store.InTx, or take the caller's tx as a parameter", what)
}

// begins reports whether fn starts a transaction: a function or method named
// Begin… that pgx or database/sql declares, or that hands out one of their
// transactions (an interface of ours in front of a pool).
func begins(fn *types.Func) bool {
	if !strings.HasPrefix(fn.Name(), "Begin") {
		return false
	}
	if fn.Pkg() != nil && isDriver(fn.Pkg().Path()) {
		return true
	}
	results := fn.Signature().Results()
	for i := range results.Len() {
		if isTransaction(results.At(i).Type()) {
			return true
		}
	}
	return false
}

func isDriver(path string) bool {
	return path == "database/sql" || ours.Under(path, "github.com/jackc/pgx/v5")
}

// isTransaction reports whether t is pgx.Tx, *pgxpool.Tx or *sql.Tx.
func isTransaction(t types.Type) bool {
	if pointer, ok := types.Unalias(t).(*types.Pointer); ok {
		t = pointer.Elem()
	}
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || named.Obj().Pkg() == nil {
		return false
	}
	return named.Obj().Name() == "Tx" && isDriver(named.Obj().Pkg().Path())
}

// beginStatement matches SQL that opens a transaction. A PL/pgSQL body holds a
// BEGIN too, but not as its first word.
var beginStatement = regexp.MustCompile(`(?i)^\s*(begin|start\s+transaction)\b`)

// sendsBegin reports whether call is an Exec of constant SQL that opens a
// transaction behind the driver's back.
func sendsBegin(pass *analysis.Pass, call *ast.CallExpr) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != "Exec" {
		return false
	}
	for _, arg := range call.Args {
		// The first string is the statement, the others are its arguments.
		if value := pass.TypesInfo.Types[arg].Value; value != nil && value.Kind() == constant.String {
			return beginStatement.MatchString(constant.StringVal(value))
		}
	}
	return false
}

// environmentReaders lists the functions whose answer depends on environment
// variables. http.ProxyFromEnvironment is one: a proxy is used only when
// configured.
var environmentReaders = map[string]bool{
	"os.Getenv":                     true,
	"os.LookupEnv":                  true,
	"os.Environ":                    true,
	"os.ExpandEnv":                  true,
	"syscall.Getenv":                true,
	"syscall.Environ":               true,
	"net/http.ProxyFromEnvironment": true,
}

func readsEnvironment(fn *types.Func) bool {
	return fn.Pkg() != nil && fn.Signature().Recv() == nil && environmentReaders[fn.Pkg().Path()+"."+fn.Name()]
}
