package boundary_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"entrega/internal/verify/boundary"
)

// The cases stand in testdata/src: each line that must be reported says so in a
// want comment, and a report on any other line fails.
func TestAnalyzer(t *testing.T) {
	t.Parallel()
	tests := []struct {
		rule     string
		packages []string
	}{
		{"Begin_RefusedOutsideStore", []string{"entrega/webhooks"}},
		{"BeginAndEnvironment_AcceptedInStoreAndTestSupport", []string{"entrega/internal/store", "entrega/internal/store/storetest"}},
		{"Environment_RefusedInThePackages", []string{"entrega/internal/egress", "entrega/cmd/bench"}},
		{"Environment_AcceptedInTheCommand", []string{"entrega/cmd/entrega"}},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			analysistest.Run(t, analysistest.TestData(), boundary.Analyzer, test.packages...)
		})
	}
}
