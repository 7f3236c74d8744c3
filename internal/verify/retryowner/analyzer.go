// Package retryowner checks that the job layer is the only owner of retries: no
// other code waits around an error, repeats a request, or lets a library or
// net/http repeat one. It reads one package at a time and judges what it can
// see there; which package may import which is the business of other checks.
//
// A justified exception is written on the offending line or on the line above:
//
//	//entrega:allow <rule> <reason>
package retryowner

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"

	"entrega/internal/verify/ours"
)

// The rules, by the names that an allow directive uses.
const (
	// ruleLoop: outside jobs, no wait in a loop that an error survives.
	ruleLoop = "retry-loop"
	// ruleLibrary: no library whose purpose is to retry.
	ruleLibrary = "retry-library"
	// ruleClient: outside internal/egress, no http.Client and none of net/http's
	// shared clients: they follow redirects and dial unguarded.
	ruleClient = "http-client"
	// ruleContext: a handler's context reaches the wire.
	ruleContext = "handler-context"
	// ruleGetBody: a request body that can be rewound lets http.Transport send it
	// a second time.
	ruleGetBody = "get-body"
	// ruleKey: an Idempotency-Key header does so as well.
	ruleKey = "idempotency-key"
)

var rules = []string{ruleLoop, ruleLibrary, ruleClient, ruleContext, ruleGetBody, ruleKey}

// Analyzer reports every second owner of a retry, and every allow directive that
// gives no reason or silences nothing.
var Analyzer = &analysis.Analyzer{
	Name: "retryowner",
	Doc:  "check that only the job layer retries",
	Run:  run,
}

// finding is one broken rule, before the directives are asked.
type finding struct {
	pos     token.Pos
	rule    string
	message string
}

// inspection gathers the findings of one package.
type inspection struct {
	pass     *analysis.Pass
	rel      string
	findings []finding
}

func run(pass *analysis.Pass) (any, error) {
	in := &inspection{pass: pass, rel: ours.Rel(pass)}
	in.checkLoops()
	for _, file := range ours.Files(pass) {
		in.checkLibraries(file)
		in.checkHandlers(file)
		if !ours.IsTest(pass, file.Name.Pos()) {
			in.checkHTTP(file)
		}
	}

	directives := parseDirectives(pass)
	for _, f := range in.findings {
		if !directives.silence(pass.Fset.Position(f.pos), f.rule) {
			pass.Report(analysis.Diagnostic{Pos: f.pos, Category: f.rule, Message: "retryowner/" + f.rule + ": " + f.message})
		}
	}
	directives.reportUseless(pass)
	return nil, nil
}

// add notes a broken rule. The sentence says what is wrong and how to mend it;
// the way to an exception is the same for all rules and stands in the package
// comment.
func (in *inspection) add(pos token.Pos, rule, format string, args ...any) {
	in.findings = append(in.findings, finding{pos: pos, rule: rule, message: fmt.Sprintf(format, args...)})
}

// under reports whether the package is one of roots or lies below one.
func (in *inspection) under(roots ...string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return ours.Under(in.rel, root) })
}

// libraries lists import path prefixes of modules whose purpose is to retry, or
// which retry unless told otherwise.
var libraries = []string{
	"github.com/PuerkitoBio/rehttp",
	"github.com/Rican7/retry",
	"github.com/avast/retry-go",
	"github.com/cenkalti/backoff",
	"github.com/eapache/go-resiliency",
	"github.com/failsafe-go/failsafe-go",
	"github.com/flowchartsman/retry",
	"github.com/go-resty/resty",
	"github.com/gojek/heimdall",
	"github.com/gojektech/heimdall",
	"github.com/googleapis/gax-go",
	"github.com/grpc-ecosystem/go-grpc-middleware/retry",
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry",
	"github.com/hashicorp/go-retryablehttp",
	"github.com/imroc/req",
	"github.com/jpillora/backoff",
	"github.com/juju/retry",
	"github.com/kamilsk/retry",
	"github.com/lestrrat-go/backoff",
	"github.com/matryer/try",
	"github.com/sethvargo/go-retry",
	"github.com/slok/goresilience",
	"github.com/ybbus/httpretry",
	"gopkg.in/matryer/try.v1",
	"gopkg.in/retry.v1",
	"k8s.io/apimachinery/pkg/util/wait",
	"k8s.io/client-go/util/retry",
	"resty.dev",
}

func (in *inspection) checkLibraries(file *ast.File) {
	for _, spec := range file.Imports {
		path := strings.Trim(spec.Path.Value, "`\"")
		for _, library := range libraries {
			if ours.Under(path, library) {
				in.add(spec.Pos(), ruleLibrary, "%s retries by itself, which makes a second retry owner; try once, return the error, and let the kind's policy decide", path)
			}
		}
	}
}
