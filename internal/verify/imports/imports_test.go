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
	tests := []struct {
		rule     string
		packages []string
	}{
		{"Direction_PointsDownOnly", []string{"entrega/webhooks", "entrega/internal/events", "entrega/jobs/jobstest"}},
		{"Direction_ExternalTestsMayReachTheSchema", []string{"entrega/internal/tenant"}},
		{"Direction_AcceptsWhatStandsBelow", []string{"entrega/jobs", "entrega/web/session", "entrega/internal/store/storetest"}},
		{"Leaf_ImportsNoneOfOurs", []string{"entrega/views"}},
		{"Owner_KeepsRiverAndEcho", []string{"entrega/cmd/entrega", "entrega/web"}},
		{"Table_ListsEveryPackage", []string{"entrega/internal/unlisted", "entrega/internal/alerts"}},
		{"Tool_StandsAside", []string{"entrega/internal/verify"}},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			analysistest.Run(t, analysistest.TestData(), imports.Analyzer, test.packages...)
		})
	}
}
