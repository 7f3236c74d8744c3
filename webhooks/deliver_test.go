package webhooks_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"entrega/internal/events"
	"entrega/jobs"
	"entrega/webhooks"
)

func TestDeliver_FailsTwiceThenWorks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receiver()
	r.answers(inTurn(500, 500))
	e := b.create(webhooks.Settings{URL: r.url, Headers: map[string]string{"X-Api-Key": "topsecret", "X-Shop": "7"}})
	b.start()

	data := "{ \"n\":1,\"n\" : 12345678901234567890.10, \"h\":\"<&\\u003e\" }"
	b.publishEvent(events.New{ID: "order-1", Type: "order.created", Data: []byte(data)})
	id := b.delivery("order-1", e.Endpoint.ID).ID
	for attempt := 1; attempt <= 2; attempt++ {
		b.reach(id, jobs.StateRetryable, attempt)
		b.due(id)
	}
	task := b.reach(id, jobs.StateCompleted, 3)
	if task.Max != 18 {
		t.Errorf("the task reads %d/%d, want 3/18", task.Attempt, task.Max)
	}

	requests := r.got()
	if len(requests) != 3 {
		t.Fatalf("%d requests, want 3", len(requests))
	}
	for i, req := range requests {
		if req.id() != "order-1" || req.Body != requests[0].Body {
			t.Errorf("request %d is %s with body %s", i+1, req.id(), req.Body)
		}
		wantVerified(t, e.Secret, req)
		stamp, err := strconv.ParseInt(req.Header.Get("webhook-timestamp"), 10, 64)
		if err != nil || req.At.Sub(time.Unix(stamp, 0)) > 10*time.Second {
			t.Errorf("request %d has the timestamp %s", i+1, req.Header.Get("webhook-timestamp"))
		}
		if got := req.Header.Get("X-Api-Key") + " " + req.Header.Get("User-Agent") + " " + req.Header.Get("Content-Type"); got != "topsecret Entrega/test application/json" {
			t.Errorf("request %d has the headers %q", i+1, got)
		}
	}
	if !strings.HasSuffix(requests[0].Body, `,"data":`+data+"}") {
		t.Errorf("the data was changed: %s", requests[0].Body)
	}

	records := b.records(id)
	var got []string
	for _, rec := range records {
		got = append(got, fmt.Sprintf("%d %s %d %s %s", rec.Attempt, rec.Class, *rec.Status, rec.Decision, *rec.IdempotencyKey))
	}
	want := []string{"1 server 500 retry_scheduled order-1", "2 server 500 retry_scheduled order-1", "3 success 200 accepted order-1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
	b.wantNoSecretKept(e.Secret, "topsecret")
	if h := b.endpoint(e.Endpoint.ID); h.State() != webhooks.StateHealthy || h.FailuresInARow != 0 {
		t.Errorf("the endpoint is %s with %d failures in a row", h.State(), h.FailuresInARow)
	}
}

// wantNoSecretKept looks for texts in everything that attempts leave behind.
func (b *bundle) wantNoSecretKept(texts ...string) {
	b.t.Helper()
	kept := value[string](b, `select coalesce(string_agg(e::text, ' '), '') || coalesce((select string_agg(a::text, ' ') from attempts a), '')
		|| coalesce((select string_agg(l::text, ' ') from audit_log l), '') from attempt_excerpts e`)
	if !strings.Contains(kept, "Webhook-Signature") {
		b.t.Error("the excerpt lacks the signature that was sent")
	}
	for _, text := range texts {
		if strings.Contains(kept, text) {
			b.t.Errorf("%q was kept", text)
		}
	}
}

func TestDeliver_410DisablesEndpoint(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receiver()
	r.answers(status(410))
	e := b.create(webhooks.Settings{URL: r.url})
	b.start()
	b.publish("order-1")
	task := b.reach(b.delivery("order-1", e.Endpoint.ID).ID, jobs.StateDiscarded, 1)
	if task.Reason != jobs.ReasonGone {
		t.Errorf("reason %q", task.Reason)
	}
	got := b.endpoint(e.Endpoint.ID)
	if got.State() != webhooks.StateDisabled || got.DisabledReason != webhooks.DisabledGone || !strings.Contains(got.DisabledDetail, "410 Gone") {
		t.Errorf("the endpoint is %s, %s: %s", got.State(), got.DisabledReason, got.DisabledDetail)
	}
	if n := value[int](b, `select count(*) from audit_log where action = 'endpoint.disable' and actor_kind = 'system' and subject_id = $1`, e.Endpoint.ID); n != 1 {
		t.Errorf("%d audit rows, want 1", n)
	}
}

func TestDeliver_400IsDiscardedByStandardAndRetriedByCompact(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receiver()
	r.answers(status(400))
	standard := b.create(webhooks.Settings{URL: r.url})
	compact := b.create(webhooks.Settings{URL: r.url, Profile: "compact"})
	b.start()
	b.publish("order-1")
	if task := b.reach(b.delivery("order-1", standard.Endpoint.ID).ID, jobs.StateDiscarded, 1); task.Reason != jobs.ReasonRejected {
		t.Errorf("standard: reason %q", task.Reason)
	}
	task := b.reach(b.delivery("order-1", compact.Endpoint.ID).ID, jobs.StateRetryable, 1)
	if task.Max != 9 {
		t.Errorf("compact: %d attempts, want 9", task.Max)
	}
	if got := b.endpoint(standard.Endpoint.ID).State(); got != webhooks.StateFailing {
		t.Errorf("the endpoint is %s after a 400, want failing", got)
	}
}

func TestDeliver_AttemptsAndWaitsOfEachProfile(t *testing.T) {
	t.Parallel()
	for profile, tt := range map[string]struct {
		waits  []time.Duration
		jitter float64
	}{
		"standard": {jitter: 0.1, waits: append([]time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour},
			repeated(10*time.Hour, 12)...)},
		"compact": {jitter: 0.2, waits: []time.Duration{30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, 2 * time.Hour,
			6 * time.Hour, 12 * time.Hour, 24 * time.Hour}},
	} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			r := b.receiver()
			r.answers(status(500))
			e := b.create(webhooks.Settings{URL: r.url, Profile: profile})
			b.start()
			b.publish("order-1")
			id := b.delivery("order-1", e.Endpoint.ID).ID
			attempts := len(tt.waits) + 1
			for n := 1; n < attempts; n++ {
				b.reach(id, jobs.StateRetryable, n)
				b.due(id)
			}
			if task := b.reach(id, jobs.StateDiscarded, attempts); task.Reason != jobs.ReasonAttemptsExhausted {
				t.Errorf("reason %q", task.Reason)
			}
			if n := r.count(); n != attempts {
				t.Errorf("%d requests, want %d", n, attempts)
			}

			records := b.records(id)
			policy, _ := b.policies.For(webhooks.Deliver.Name, profile)
			for i, want := range tt.waits {
				rec := records[i]
				base, wait := policy.Wait(id, i+1)
				if *rec.BaseWaitMS != want.Milliseconds() || base != want {
					t.Errorf("base wait %d is %d ms, want %s", i+1, *rec.BaseWaitMS, want)
				}
				if *rec.WaitMS != wait.Milliseconds() {
					t.Errorf("wait %d is %d ms and recomputes to %s", i+1, *rec.WaitMS, wait)
				}
				if off := float64(*rec.WaitMS)/float64(want.Milliseconds()) - 1; off < -tt.jitter || off > tt.jitter {
					t.Errorf("wait %d strays by %.0f %%", i+1, off*100)
				}
			}

			if _, err := b.client.Retry(b.ctx, b.owner, b.project, id); err != nil {
				t.Fatal(err)
			}
			b.reach(id, jobs.StateDiscarded, attempts+1)
			if n := r.count(); n != attempts+1 {
				t.Errorf("%d requests after a click on Retry, want %d", n, attempts+1)
			}
			if last := b.records(id)[attempts]; last.Trigger != jobs.TriggerManual {
				t.Errorf("the last attempt's trigger is %s", last.Trigger)
			}
		})
	}
}

func repeated(d time.Duration, n int) []time.Duration {
	all := make([]time.Duration, n)
	for i := range all {
		all[i] = d
	}
	return all
}

func TestDeliver_ExpiredEventIsNotSent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receiver()
	r.answers(status(500))
	e := b.create(webhooks.Settings{URL: r.url})
	b.start()
	b.publishEvent(events.New{ID: "order-1", Type: "order.created", Data: []byte("1"), ExpiresAt: time.Now().Add(time.Hour)})
	id := b.delivery("order-1", e.Endpoint.ID).ID
	b.reach(id, jobs.StateRetryable, 1)
	b.exec(`update events set expires_at = now() where id = 'order-1'`)
	b.due(id)
	b.await("the delivery to end", func() bool { return b.task(id).State == jobs.StateDiscarded })
	if reason := b.task(id).Reason; reason != jobs.ReasonHorizon {
		t.Errorf("reason %q", reason)
	}
	if n := r.count(); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

func TestDeliver_PrunedEventIsDiscarded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receiver()
	r.answers(status(500))
	e := b.create(webhooks.Settings{URL: r.url})
	b.start()
	b.publish("order-1")
	id := b.delivery("order-1", e.Endpoint.ID).ID
	b.reach(id, jobs.StateRetryable, 1)
	b.exec(`delete from events where id = 'order-1'`)
	b.due(id)
	b.await("the delivery to end", func() bool { return b.task(id).State == jobs.StateDiscarded })
	if reason := b.task(id).Reason; reason != "event_pruned" {
		t.Errorf("reason %q", reason)
	}
	if n := r.count(); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}
