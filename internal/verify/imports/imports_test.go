package imports_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"entrega/internal/verify/imports"
)

// The cases stand in testdata/src, a small copy of the layout: each import that
// must be refused says so in a want comment, and a report elsewhere fails.
func TestAnalyzer(t *testing.T) {
	t.Parallel()
	// One run for all: each would type-check the standard library anew.
	analysistest.Run(t, analysistest.TestData(), imports.Analyzer,
		"entrega/webhooks", "entrega/internal/events", "entrega/jobs/jobstest", // Direction_PointsDownOnly
		"entrega/internal/tenant",                                                 // Direction_ExternalTestsMayReachTheSchema
		"entrega/jobs", "entrega/web/session", "entrega/internal/store/storetest", // Direction_AcceptsWhatStandsBelow
		"entrega/views",                      // Leaf_ImportsNoneOfOurs
		"entrega/cmd/entrega", "entrega/web", // Owner_KeepsRiverAndEcho
		"entrega/internal/unlisted", "entrega/internal/alerts", // Table_ListsEveryPackage
		"entrega/internal/verify", // Tool_StandsAside
	)
}
