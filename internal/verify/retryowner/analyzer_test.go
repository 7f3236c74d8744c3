package retryowner_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"entrega/internal/verify/retryowner"
)

// The cases stand in testdata/src: each line that must be reported says so in a
// want comment, and a report on any other line fails.
func TestAnalyzer(t *testing.T) {
	t.Parallel()
	tests := []struct {
		rule     string
		packages []string
	}{
		{"RetryLoop_RefusedWhereAnErrorSurvives", []string{"entrega/loopbad"}},
		{"RetryLoop_AcceptedWhereNoneDoes", []string{"entrega/loopgood"}},
		{"RetryLibrary_Refused", []string{"entrega/library"}},
		{"JobsOwnsItsLoops", []string{"entrega/jobs"}},
		{"HandlerContext_RefusedInHandlers", []string{"entrega/webhooks", "entrega/internal/events"}},
		{"HTTP_RefusedOutsideTheDoor", []string{"entrega/web", "entrega/mailer"}},
		{"HTTP_AcceptedInTheDoorAndInTests", []string{"entrega/internal/egress", "entrega/internal/events/eventstest"}},
		{"Allow_NeedsRuleReasonAndCause", []string{"entrega/allow"}},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			analysistest.Run(t, analysistest.TestData(), retryowner.Analyzer, test.packages...)
		})
	}
}
