package webhooks_test

import (
	"testing"

	"entrega/jobs"
	"entrega/webhooks"
)

func TestSend_RefusesBadURL(t *testing.T) {
	if webhooks.Send(t.Context(), &jobs.Job[string]{Args: ":"}) == nil {
		t.Error("no error")
	}
}
