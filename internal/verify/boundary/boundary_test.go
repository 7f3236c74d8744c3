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
	// One run for all: each would type-check the standard library anew.
	analysistest.Run(t, analysistest.TestData(), boundary.Analyzer,
		"entrega/webhooks",                                           // Begin_RefusedOutsideStore
		"entrega/internal/store", "entrega/internal/store/storetest", // BeginAndEnvironment_AcceptedInStoreAndTestSupport
		"entrega/internal/egress", "entrega/cmd/bench", // Environment_RefusedInThePackages
		"entrega/cmd/entrega", // Environment_AcceptedInTheCommand
	)
}
