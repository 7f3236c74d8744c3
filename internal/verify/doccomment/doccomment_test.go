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
	tests := []struct {
		rule     string
		packages []string
	}{
		{"Comments_AskedOfEachPackageAndExport", []string{"entrega/bad"}},
		{"Comments_AcceptedInEveryUsualForm", []string{"entrega/good"}},
		{"Commands_NeedAPackageCommentOnly", []string{"entrega/cmd/good", "entrega/cmd/bad"}},
		{"Tests_NeedNone", []string{"entrega/onlytests"}},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			analysistest.Run(t, analysistest.TestData(), doccomment.Analyzer, test.packages...)
		})
	}
}
