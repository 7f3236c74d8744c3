package retryowner

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"net/textproto"

	"golang.org/x/tools/go/types/typeutil"
)

// clientMethods and clientObjects name what sends through an http.Client.
var (
	clientMethods = map[string]bool{"Do": true, "Get": true, "Head": true, "Post": true, "PostForm": true}
	clientObjects = map[string]bool{"Get": true, "Head": true, "Post": true, "PostForm": true, "DefaultClient": true, "DefaultTransport": true}
)

// checkHTTP looks for requests that bypass the guarded door, and for what makes
// http.Transport send a request twice: it replays one after a broken idle
// connection when the body can be had again or when the request calls itself
// idempotent.
func (in *inspection) checkHTTP(file *ast.File) {
	door := in.under("internal/egress")
	mayKey := door || in.under("mailer")
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if !door {
				in.checkClient(n)
			}
		case *ast.AssignStmt:
			in.checkAssign(n, mayKey)
		case *ast.CompositeLit:
			in.checkLiteral(n, mayKey)
		case *ast.CallExpr:
			if !mayKey {
				in.checkHeaderCall(n)
			}
		}
		return true
	})
}

func (in *inspection) checkClient(ident *ast.Ident) {
	object := in.pass.TypesInfo.Uses[ident]
	if object == nil || object.Pkg() == nil || object.Pkg().Path() != "net/http" {
		return
	}
	name := ""
	switch object := object.(type) {
	case *types.Func:
		receiver := object.Signature().Recv()
		if receiver == nil && clientObjects[object.Name()] {
			name = "http." + object.Name()
		}
		if receiver != nil && clientMethods[object.Name()] && isNamed(receiver.Type(), "net/http", "Client") {
			name = "http.Client." + object.Name()
		}
	case *types.Var:
		if !object.IsField() && clientObjects[object.Name()] {
			name = "http." + object.Name()
		}
	}
	if name != "" {
		in.add(ident.Pos(), ruleClient, "%s follows redirects, repeats requests and dials unguarded; send through internal/egress, which calls RoundTrip once", name)
	}
}

func (in *inspection) checkAssign(assign *ast.AssignStmt, mayKey bool) {
	for i, left := range assign.Lhs {
		switch left := ast.Unparen(left).(type) {
		case *ast.SelectorExpr:
			isNil := len(assign.Rhs) == len(assign.Lhs) && in.isNil(assign.Rhs[i])
			if in.isGetBody(left.Sel) && !isNil {
				in.reportGetBody(left.Sel.Pos())
			}
		case *ast.IndexExpr:
			if !mayKey && in.isHeader(left.X) && in.isKey(left.Index) {
				in.reportKey(left.Index.Pos())
			}
		}
	}
}

func (in *inspection) checkLiteral(literal *ast.CompositeLit, mayKey bool) {
	header := in.isHeader(literal)
	for _, element := range literal.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		if field, ok := pair.Key.(*ast.Ident); ok && in.isGetBody(field) && !in.isNil(pair.Value) {
			in.reportGetBody(field.Pos())
		}
		if header && !mayKey && in.isKey(pair.Key) {
			in.reportKey(pair.Key.Pos())
		}
	}
}

// checkHeaderCall looks at Set and Add of http.Header.
func (in *inspection) checkHeaderCall(call *ast.CallExpr) {
	fn := typeutil.StaticCallee(in.pass.TypesInfo, call)
	if fn == nil || len(call.Args) == 0 || (fn.Name() != "Set" && fn.Name() != "Add") {
		return
	}
	receiver := fn.Signature().Recv()
	if receiver != nil && isNamed(receiver.Type(), "net/http", "Header") && in.isKey(call.Args[0]) {
		in.reportKey(call.Args[0].Pos())
	}
}

func (in *inspection) reportGetBody(pos token.Pos) {
	in.add(pos, ruleGetBody, "a request with GetBody is sent again by http.Transport after a broken connection; leave GetBody nil")
}

func (in *inspection) reportKey(pos token.Pos) {
	in.add(pos, ruleKey, "a request with an Idempotency-Key header is sent again by http.Transport after a broken connection; leave the header out, webhook-id is the receiver's key")
}

// isGetBody reports whether ident names the field of http.Request.
func (in *inspection) isGetBody(ident *ast.Ident) bool {
	field, ok := in.pass.TypesInfo.Uses[ident].(*types.Var)
	return ok && field.IsField() && field.Name() == "GetBody" && field.Pkg() != nil && field.Pkg().Path() == "net/http"
}

func (in *inspection) isNil(expr ast.Expr) bool {
	return in.pass.TypesInfo.Types[expr].IsNil()
}

func (in *inspection) isHeader(expr ast.Expr) bool {
	t := in.pass.TypesInfo.TypeOf(expr)
	return t != nil && isNamed(t, "net/http", "Header")
}

// isKey reports whether expr is a constant that net/http takes for an idempotency
// key; it knows two spellings.
func (in *inspection) isKey(expr ast.Expr) bool {
	value := in.pass.TypesInfo.Types[expr].Value
	if value == nil || value.Kind() != constant.String {
		return false
	}
	name := textproto.CanonicalMIMEHeaderKey(constant.StringVal(value))
	return name == "Idempotency-Key" || name == "X-Idempotency-Key"
}

// isNamed reports whether t, or what it points to, is the type name of the
// package path.
func isNamed(t types.Type, path, name string) bool {
	if pointer, ok := types.Unalias(t).(*types.Pointer); ok {
		t = pointer.Elem()
	}
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || named.Obj().Pkg() == nil {
		return false
	}
	return named.Obj().Name() == name && named.Obj().Pkg().Path() == path
}
