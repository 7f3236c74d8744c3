package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"entrega/jobs"
)

// stuckAPI is a mail API that takes the first request and never answers it. asked is closed when that has come, again when another
// was answered.
func stuckAPI(t *testing.T) (url string, asked, again chan struct{}) {
	t.Helper()
	asked, again = make(chan struct{}), make(chan struct{})
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch requests.Add(1) {
		case 1:
			close(asked)
			<-r.Context().Done()
		case 2:
			_, _ = io.WriteString(w, `{"id":"provider-1"}`)
			close(again)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, asked, again
}

func TestServe_Kill9InAMailLeavesALostAttemptUnderItsOrder(t *testing.T) {
	t.Parallel()
	url, asked, again := stuckAPI(t)
	in := install(t, "ENTREGA_ALLOW_HTTP=true", "ENTREGA_EGRESS_ALLOW=127.0.0.1", "ENTREGA_MAIL_TRANSPORT=api", "ENTREGA_MAIL_API=generic",
		"ENTREGA_MAIL_API_URL="+url, "ENTREGA_MAIL_FROM=Shop <mail@shop.example>")
	in.start()
	_, key := in.project("Crash")
	var queued struct{ ID string }
	in.call(key, "POST", "/v1/notifications", map[string]string{"orderId": "SO-1", "to": "sales@acme.example", "subject": "New order", "text": "A new order."}, &queued, http.StatusAccepted)
	within(t, asked, time.Minute, "the mail is being sent")
	in.kill()
	in.start()
	within(t, again, 2*time.Minute, "the mail is sent again")
	in.stop() // so that the answer is recorded

	var rows []string
	for line := range strings.Lines(in.command("evidence", "export", "--order", "SO-1")) {
		var r struct {
			IdempotencyKey *string `json:"idempotency_key"`
			RecipientRef   *string `json:"recipient_ref"`
			Reason         string  `json:"reason"`
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if r.IdempotencyKey == nil || *r.IdempotencyKey != queued.ID || r.RecipientRef == nil {
			t.Errorf("a row does not name its mail and recipient: %s", line)
		}
		rows = append(rows, r.Reason)
	}
	if len(rows) != 2 || rows[0] != jobs.ReasonWorkerLost || rows[1] != jobs.ReasonAccepted {
		t.Errorf("the order's evidence is %v, want the lost attempt and the accepted one", rows)
	}
	if out := in.command("evidence", "verify"); !strings.Contains(out, "All chains hold") {
		t.Error(out)
	}
}
