package mailer_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"entrega/internal/store"
	"entrega/jobs"
	"entrega/mailer"
)

const day = 24 * time.Hour

// left counts what is still kept of mails.
func (b *bundle) left() mailer.Removed {
	b.t.Helper()
	return mailer.Removed{
		Captured:      value[int64](b, `select count(*) from captured_mails`),
		Contents:      value[int64](b, `select count(*) from notifications where body_text <> ''`),
		Addresses:     value[int64](b, `select count(*) from mail_recipients`),
		Notifications: value[int64](b, `select count(*) from notifications`),
		Facts:         value[int64](b, `select count(*) from mail_feedback`),
	}
}

func TestRetention_RemovesEachPartWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	b := setup(t, mailer.Settings{})
	stop := b.start()
	plain := b.notify(order("SO-1", buyer))
	bounced := b.notify(order("SO-2", "bounce@simulate.invalid"))
	waiting := b.notify(order("SO-3", "defer@simulate.invalid"))
	b.reach(plain.TaskID, jobs.StateCompleted)
	b.reach(bounced.TaskID, jobs.StateCompleted)
	b.reach(waiting.TaskID, jobs.StateRetryable)
	stop() // so that the mail that waits is not captured once more meanwhile

	periodic := mailer.Retention(b.pool, b.now)
	sweep := func() {
		t.Helper()
		if err := periodic.Do(b.ctx); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		name string
		at   time.Duration
		want mailer.Removed
	}{
		{"before a month", 29 * day, mailer.Removed{Captured: 3, Contents: 3, Addresses: 3, Notifications: 3, Facts: 1}},
		{"after a month the captured messages are gone", 31 * day, mailer.Removed{Contents: 3, Addresses: 3, Notifications: 3, Facts: 1}},
		{"before three months", 89 * day, mailer.Removed{Contents: 3, Addresses: 3, Notifications: 3, Facts: 1}},
		// The mail that waits is still to be sent, and the suppression page still names whom it keeps mail from.
		{"after three months what they said is gone", 91 * day, mailer.Removed{Contents: 1, Addresses: 2, Notifications: 3, Facts: 1}},
		{"before the rows' time is over", 399 * day, mailer.Removed{Contents: 1, Addresses: 2, Notifications: 3, Facts: 1}},
		{"then they are gone with their feedback", 401 * day, mailer.Removed{Contents: 1, Addresses: 2, Notifications: 1}},
	} {
		b.moveTo(time.Now().Add(step.at))
		sweep()
		if diff := cmp.Diff(step.want, b.left()); diff != "" {
			t.Fatalf("%s: left are (-want +got):\n%s", step.name, diff)
		}
	}
	if n := len(b.records(plain.TaskID)); n != 1 {
		t.Errorf("the ledger has %d rows of a mail whose row is gone, want 1", n)
	}
}

func TestRetention_SourceOfACapturedMailComesFromItsFieldsThen(t *testing.T) {
	t.Parallel()
	b := setup(t, mailer.Settings{})
	b.start()
	q := b.notify(order("SO-1", buyer))
	b.reach(q.TaskID, jobs.StateCompleted)
	source := func() ([]byte, error) {
		t.Helper()
		l, err := b.mailer.NotificationByID(b.ctx, b.pool, b.project, q.ID)
		if err != nil {
			t.Fatal(err)
		}
		return b.mailer.Source(b.ctx, b.pool, l)
	}
	before, err := source()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mailer.RemoveOld(b.ctx, b.pool, time.Now().Add(31*day)); err != nil {
		t.Fatal(err)
	}
	if after, err := source(); err != nil || string(after) != string(before) {
		t.Errorf("the source is %q, %v; it was %q", after, err, before)
	}
	if _, err := mailer.RemoveOld(b.ctx, b.pool, time.Now().Add(91*day)); err != nil {
		t.Fatal(err)
	}
	var conflict *store.ConflictError
	if raw, err := source(); !errors.As(err, &conflict) {
		t.Errorf("without its content the source is %q, %v", raw, err)
	}
	if _, err := b.mailer.SendAgain(b.ctx, b.owner, b.project, q.ID); !errors.As(err, &conflict) {
		t.Errorf("without its content it is sent again: %v", err)
	}
}

func TestErase_RetryOfAMailWithoutContentSendsNothing(t *testing.T) {
	t.Parallel()
	b, r := setupRelay(t, relayOptions{})
	r.answers(at("rcpt", reply(550, 5, 7, 1, "not today")))
	b.start()
	q := b.notify(order("SO-1", buyer))
	b.reach(q.TaskID, jobs.StateDiscarded)
	if _, err := b.mailer.EraseRecipient(b.ctx, b.owner, b.project, buyer); err != nil {
		t.Fatal(err)
	}
	r.answers(nil)
	// The address is known again, by a later mail.
	b.reach(b.notify(order("SO-2", buyer)).TaskID, jobs.StateCompleted)
	if _, err := b.client.Retry(b.ctx, b.owner, b.project, q.TaskID); err != nil {
		t.Fatal(err)
	}
	b.await("the retry to end", func() bool { return b.task(q.TaskID).Reason == mailer.ReasonContentRemoved })
	if got := r.got(); len(got) != 1 || !strings.Contains(got[0].raw, "SO-2") {
		t.Errorf("the relay got %+v", got)
	}
}
