package doccomment_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"entrega/internal/verify/doccomment"
)

// The cases stand in testdata/src: each line that must be reported says so in a
// want comment, and a report on any other line fails.
func TestAnalyzer(t *testing.T) {
	t.Parallel()
	// One run for all: each would type-check the standard library anew.
	analysistest.Run(t, analysistest.TestData(), doccomment.Analyzer,
		"entrega/bad",                         // Comments_AskedOfEachPackageAndExport
		"entrega/good",                        // Comments_AcceptedInEveryUsualForm
		"entrega/cmd/good", "entrega/cmd/bad", // Commands_NeedAPackageCommentOnly
		"entrega/onlytests", // Tests_NeedNone
	)
}
