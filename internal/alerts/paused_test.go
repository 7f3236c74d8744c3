package alerts

import (
	"strings"
	"testing"
	"time"
)

func (b *bundle) refuseMail(project string, refusals int) {
	b.t.Helper()
	b.exec(`insert into mail_pauses (project_id, fingerprint, about, reason, refusals, paused_since, refused_at, paused_until)
		values ($1, '\x00', 'smtp.example.com:587', 'The relay answered 535 wrong password (to our credentials).', $2, $3::timestamptz, $3::timestamptz, $3::timestamptz + interval '5 minutes')
		on conflict (project_id) do update set refusals = excluded.refusals, refused_at = excluded.refused_at`, project, refusals, b.now)
}

func TestPaused_IsOneAlertHoweverOftenItIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.refuseMail("", 1)
	b.look()
	b.now = b.now.Add(5 * time.Minute)
	b.refuseMail("", 2)
	b.look()
	a := b.one(TransportPaused)
	if a.State != StateOpen || a.Count != 2 || a.ProjectID != "" || !strings.HasPrefix(a.Sentence(), "smtp.example.com:587 takes no mail from us: The relay answered 535") {
		t.Errorf("the alert is %+v: %s", a, a.Sentence())
	}
	b.exec(`delete from mail_pauses`)
	b.look()
	b.resolvedItself(TransportPaused, "it takes mail again")
}

func TestPaused_OfAProjectIsItsOwn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.refuseMail(b.project, 1)
	b.look()
	if a := b.one(TransportPaused); a.ProjectID != b.project {
		t.Errorf("the alert belongs to %q", a.ProjectID)
	}
}

func TestDiscarded_MailsLeftOutOnPurposeRaiseNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, reason := range []string{"suppressed", "dropped_burst_cap", "already_confirmed", "recipient_erased"} {
		b.insert(task{kind: "owner.notify", queue: "notify", at: b.now, reason: reason})
	}
	b.look()
	b.none(TaskDiscarded)
	b.insert(task{kind: "owner.notify", queue: "notify", at: b.now, reason: "rejected"})
	b.look()
	b.one(TaskDiscarded)
}
