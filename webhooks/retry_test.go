package webhooks_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"entrega/internal/events"
	"entrega/jobs"
	"entrega/webhooks"
)

func TestDeliver_RetryAfterSnoozesAndSpendsNoAttempt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer func() http.HandlerFunc
	}{
		"429 with seconds": {func() http.HandlerFunc { return retryAfter(429, "2") }},
		"503 with a date": {func() http.HandlerFunc {
			return func(w http.ResponseWriter, req *http.Request) {
				// A date has whole seconds: three from now is at least two away.
				retryAfter(503, time.Now().Add(3*time.Second).UTC().Format(http.TimeFormat))(w, req)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			r := b.receiver()
			once := tt.answer()
			r.answers(func(w http.ResponseWriter, req *http.Request) {
				if r.count() == 1 {
					once(w, req)
				}
			})
			e := b.create(webhooks.Settings{URL: r.url})
			b.start()
			b.publish("order-1")
			id := b.delivery("order-1", e.Endpoint.ID).ID
			task := b.reach(id, jobs.StateCompleted, 1)
			if task.Attempt != 1 {
				t.Errorf("attempt %d, want 1", task.Attempt)
			}
			requests := r.got()
			if len(requests) != 2 {
				t.Fatalf("%d requests, want 2", len(requests))
			}
			if gap := requests[1].At.Sub(requests[0].At); gap < 2*time.Second {
				t.Errorf("came back after %s, earlier than the 2 s asked for", gap)
			}
			records := b.records(id)
			if len(records) != 2 || records[0].Charged || records[0].Decision != jobs.VerdictSnoozed || *records[0].RetryAfterRead != "used" || records[0].Class != "throttle" {
				t.Errorf("ledger: %+v", records)
			}
		})
	}
}

func TestDeliver_RetryAfterThatMeansNothingIsKeptAndIgnored(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start()
	for raw, want := range map[string]string{"soon": "ignored", "-1": "ignored", "inf": "ignored", "9223372037": "capped", "1893456000": "capped"} {
		r := b.receiver()
		r.answers(retryAfter(429, raw))
		e := b.create(webhooks.Settings{URL: r.url, Description: raw, EventTypes: []string{"type.x" + strings.Trim(raw, "-")}})
		b.publishEvent(events.New{ID: "event:" + strings.Trim(raw, "-"), Type: "type.x" + strings.Trim(raw, "-"), Data: []byte("1")})
		id := b.delivery("event:"+strings.Trim(raw, "-"), e.Endpoint.ID).ID
		state, attempt := jobs.StateRetryable, 1
		if want == "capped" {
			state = jobs.StateSnoozed
		}
		b.reach(id, state, attempt)
		rec := b.records(id)[0]
		if *rec.RetryAfterRaw != raw || *rec.RetryAfterRead != want {
			t.Errorf("%q was kept as %q and read as %s, want %s", raw, *rec.RetryAfterRaw, *rec.RetryAfterRead, want)
		}
		if want == "capped" && *rec.WaitMS != (10*time.Hour).Milliseconds() {
			t.Errorf("%q: wait %d ms, want 10 h", raw, *rec.WaitMS)
		}
		if want == "ignored" && rec.Decision != jobs.VerdictRetryScheduled {
			t.Errorf("%q: %s, want a retry", raw, rec.Decision)
		}
	}
}
