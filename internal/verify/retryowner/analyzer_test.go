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
	// One run for all: each would type-check the standard library anew.
	analysistest.Run(t, analysistest.TestData(), retryowner.Analyzer,
		"entrega/loopbad",                             // RetryLoop_RefusedWhereAnErrorSurvives
		"entrega/loopgood",                            // RetryLoop_AcceptedWhereNoneDoes
		"entrega/library",                             // RetryLibrary_Refused
		"entrega/jobs",                                // JobsOwnsItsLoops
		"entrega/webhooks", "entrega/internal/events", // HandlerContext_RefusedInHandlers
		"entrega/web", "entrega/mailer", // HTTP_RefusedOutsideTheDoor
		"entrega/internal/egress", "entrega/internal/events/eventstest", // HTTP_AcceptedInTheDoorAndInTests
		"entrega/allow", // Allow_NeedsRuleReasonAndCause
	)
}
