package mailer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"entrega/jobs"
	"entrega/mailer"
)

const buyer = "buyer@customer.example"

func TestSMTP_AcceptedMailHasItsFixedBytesAndItsEvidence(t *testing.T) {
	t.Parallel()
	b, r := setupRelay(t, relayOptions{starttls: true, password: "right"})
	var encrypted bool
	r.answers(func(m moment) error {
		if m.stage == "mail" {
			encrypted = m.encrypted
		}
		return nil
	})
	b.start()
	n := order("SO-1", buyer)
	n.HTML = "<p>You have a new order: <b>SO-1</b> für Ines</p>"
	q := b.notify(n)
	b.reach(q.TaskID, jobs.StateCompleted)

	got := r.got()
	if len(got) != 1 || got[0].from != "mail@shop.example" || got[0].to != buyer {
		t.Fatalf("the relay got %+v", got)
	}
	for _, want := range []string{"Message-ID: <" + q.ID + "@shop.example>\r\n", "Auto-Submitted: auto-generated\r\n", "Subject: New order SO-1\r\n",
		"To: <" + buyer + ">\r\n", `From: "Shop" <mail@shop.example>`, "multipart/alternative", "f=C3=BCr Ines"} {
		if !strings.Contains(got[0].raw, want) {
			t.Errorf("the message lacks %q:\n%s", want, got[0].raw)
		}
	}
	if !encrypted {
		t.Error("the message was offered before STARTTLS")
	}
	if diff := cmp.Diff([]string{"1 success 250 accepted accepted *"}, b.ledger(q.TaskID)); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
	rec := b.records(q.TaskID)[0]
	if *rec.IdempotencyKey != q.ID || *rec.OrderID != "SO-1" || len(rec.RecipientRef) != 32 || len(rec.RequestSHA256) != 32 || *rec.Peer != r.addr.String() {
		t.Errorf("the record is %+v", rec)
	}
	if at := value[*time.Time](b, `select accepted_at from notifications where id = $1`, q.ID); at == nil {
		t.Error("the notification is not marked as accepted")
	}
	b.wantNowhere(buyer)
}

func TestSMTP_FailuresAtEachStage(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		stage string
		err   error
		state jobs.TaskState
		want  string
	}{
		"450 at RCPT":           {"rcpt", reply(450, 4, 2, 0, "greylisted"), jobs.StateRetryable, "1 throttle 450 retry_scheduled failed *"},
		"451 after the dot":     {"dot", reply(451, 4, 3, 0, "out of order"), jobs.StateRetryable, "1 throttle 451 retry_scheduled failed *"},
		"450 at MAIL":           {"mail", reply(450, 4, 7, 1, "later"), jobs.StateRetryable, "1 throttle 450 retry_scheduled failed *"},
		"454 at AUTH":           {"auth", reply(454, 4, 7, 0, "no backend"), jobs.StateRetryable, "1 server 454 retry_scheduled failed *"},
		"552 at RCPT":           {"rcpt", reply(552, 0, 0, 0, "too many"), jobs.StateRetryable, "1 client 552 retry_scheduled failed *"},
		"552 5.5.3 at RCPT":     {"rcpt", reply(552, 5, 5, 3, "too many"), jobs.StateRetryable, "1 client 552 retry_scheduled failed *"},
		"552 5.2.2 at RCPT":     {"rcpt", reply(552, 5, 2, 2, "full"), jobs.StateDiscarded, "1 client 552 permanent_failure rejected *"},
		"550 at RCPT":           {"rcpt", reply(550, 5, 7, 1, "<"+strings.ToUpper(buyer)+"> unwanted"), jobs.StateDiscarded, "1 client 550 permanent_failure rejected *"},
		"550 at MAIL":           {"mail", reply(550, 5, 7, 1, "sender refused"), jobs.StateDiscarded, "1 client 550 permanent_failure rejected *"},
		"554 after the dot":     {"dot", reply(554, 5, 7, 1, "spam"), jobs.StateDiscarded, "1 client 554 permanent_failure rejected *"},
		"450 with a final code": {"rcpt", reply(450, 5, 1, 1, "odd"), jobs.StateRetryable, "1 throttle 450 retry_scheduled failed *"},
		"a connection dropped":  {"connect", errDrop, jobs.StateRetryable, "1 network 0 retry_scheduled failed *"},
		"dropped at RCPT":       {"rcpt", errDrop, jobs.StateRetryable, "1 network 0 retry_scheduled failed *"},
		"421 at connect":        {"connect", reply(421, 4, 3, 2, "busy"), jobs.StateSnoozed, "1 throttle 421 snoozed relay_busy"},
		"421 at EHLO":           {"ehlo", reply(421, 4, 3, 2, "busy"), jobs.StateSnoozed, "1 throttle 421 snoozed relay_busy"},
		"421 at RCPT":           {"rcpt", reply(421, 4, 3, 2, "busy"), jobs.StateSnoozed, "1 throttle 421 snoozed relay_busy"},
		"421 after the dot":     {"dot", reply(421, 4, 3, 2, "busy"), jobs.StateSnoozed, "1 throttle 421 snoozed relay_busy"},
		"554 at connect":        {"connect", reply(554, 0, 0, 0, "no service"), jobs.StateSnoozed, "1 client 554 snoozed transport_paused"},
		"550 at EHLO":           {"ehlo", reply(550, 5, 7, 1, "not you"), jobs.StateSnoozed, "1 client 550 snoozed transport_paused"},
		"535 at AUTH":           {"auth", reply(535, 5, 7, 8, "wrong password"), jobs.StateSnoozed, "1 client 535 snoozed transport_paused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, r := setupRelay(t, relayOptions{password: "right"})
			r.answers(at(tt.stage, tt.err))
			b.start()
			q := b.notify(order("SO-1", buyer))
			b.reach(q.TaskID, tt.state)
			if diff := cmp.Diff([]string{tt.want}, b.ledger(q.TaskID)); diff != "" {
				t.Errorf("ledger (-want +got):\n%s", diff)
			}
			if n := len(r.got()); n != 0 {
				t.Errorf("the relay took %d messages", n)
			}
			b.wantNowhere(buyer)
			if value[bool](b, `select exists (select from mail_suppressions)`) {
				t.Error("the recipient was suppressed")
			}
		})
	}
}

func TestSMTP_NobodyThereSuppressesTheRecipient(t *testing.T) {
	t.Parallel()
	b, r := setupRelay(t, relayOptions{})
	r.answers(at("rcpt", reply(550, 5, 1, 1, "<"+buyer+"> does not exist")))
	b.start()
	first := b.notify(order("SO-1", buyer))
	b.reach(first.TaskID, jobs.StateDiscarded)
	r.answers(nil)

	second := b.notify(order("SO-2", buyer))
	if task := b.reach(second.TaskID, jobs.StateDiscarded); task.Reason != mailer.ReasonSuppressed {
		t.Errorf("the next mail ended as %q", task.Reason)
	}
	if len(r.got()) != 0 || r.count("rcpt") != 1 {
		t.Errorf("a suppressed recipient was asked for %d times", r.count("rcpt"))
	}
	b.wantNowhere(buyer)

	list, err := b.mailer.ListSuppressions(b.ctx, b.pool, b.project, page())
	if err != nil || len(list.Rows) != 1 || list.Rows[0].Reason != mailer.HardBounce || list.Rows[0].Address != buyer {
		t.Fatalf("the suppressions are %+v, %v", list.Rows, err)
	}
	if err := b.mailer.RemoveSuppression(b.ctx, b.owner, b.project, list.Rows[0].ID, "it was a typo"); err != nil {
		t.Fatal(err)
	}
	third := b.notify(order("SO-3", buyer))
	b.reach(third.TaskID, jobs.StateCompleted)
	if n := value[int](b, `select count(*) from audit_log where action = 'suppression.remove' and detail ->> 'reason' = 'it was a typo'`); n != 1 {
		t.Errorf("%d audit rows", n)
	}
}

func TestSMTP_DropAfterDataSendsTheSameBytesAgain(t *testing.T) {
	t.Parallel()
	b, r := setupRelay(t, relayOptions{})
	r.answers(func(m moment) error {
		if m.stage == "dot" && m.n == 1 {
			return errDrop
		}
		return nil
	})
	b.start()
	n := order("SO-1", buyer)
	n.HTML = "<p>SO-1</p>"
	q := b.notify(n)
	b.reach(q.TaskID, jobs.StateRetryable)
	b.due()
	b.reach(q.TaskID, jobs.StateCompleted)

	got := r.got()
	if len(got) != 2 {
		t.Fatalf("the relay got %d copies, want 2", len(got))
	}
	if diff := cmp.Diff(got[0].raw, got[1].raw); diff != "" {
		t.Errorf("the second copy differs (-first +second):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"1 unknown 0 retry_scheduled failed *", "2 success 250 accepted accepted *"}, b.ledger(q.TaskID)); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
	if records := b.records(q.TaskID); !slices.Equal(records[0].RequestSHA256, records[1].RequestSHA256) {
		t.Error("the ledger has another hash for the second copy")
	}
	if !value[bool](b, `select possible_duplicate from notifications where id = $1`, q.ID) {
		t.Error("the notification is not marked as a possible duplicate")
	}
	if note := value[string](b, `select note from attempt_excerpts where task_id = $1 and seq = 1`, q.TaskID); !strings.Contains(note, "duplicate") {
		t.Errorf("the attempt's note is %q", note)
	}
}

func TestSMTP_421AfterEveryFifthMessageLosesNoneAndDoublesNone(t *testing.T) {
	t.Parallel()
	b, r := setupRelay(t, relayOptions{})
	r.answers(func(m moment) error {
		if m.stage == "mail" && m.onConn > 5 {
			return reply(421, 4, 7, 0, "five messages are enough")
		}
		return nil
	})
	b.startNode("node_a", b.mailer, 1)
	const mails = 23
	var ids []int64
	for i := range mails {
		ids = append(ids, b.notify(order(fmt.Sprintf("SO-%d", i), fmt.Sprintf("buyer%d@customer.example", i))).TaskID)
	}
	b.await("every mail to be accepted", func() bool {
		b.due()
		return value[int](b, `select count(*) from river_job where state = 'completed'`) == mails
	})
	to := map[string]int{}
	for _, m := range r.got() {
		to[m.to]++
	}
	if len(to) != mails || len(r.got()) != mails {
		t.Errorf("%d messages to %d recipients, want %d each once", len(r.got()), len(to), mails)
	}
	paused := 0
	for _, id := range ids {
		for _, rec := range b.records(id) {
			if rec.Decision == jobs.VerdictSnoozed {
				paused++
			}
			if rec.Attempt != 1 || rec.Charged != (rec.Decision == jobs.VerdictAccepted) {
				t.Errorf("task %d was charged for the pause: %s", id, b.ledger(id))
			}
		}
	}
	if paused == 0 {
		t.Error("the relay's 421 met no mail")
	}
}

func TestSMTP_WrongPasswordPausesTheTransportAndResumesByItself(t *testing.T) {
	t.Parallel()
	b, r := setupRelay(t, relayOptions{password: "right"})
	r.answers(at("auth", reply(535, 5, 7, 8, "wrong password")))
	stop := b.startNode("node_a", b.mailer, 1)
	first := b.notify(order("SO-1", buyer))
	b.reach(first.TaskID, jobs.StateSnoozed)
	second := b.notify(order("SO-2", "other@customer.example"))
	b.reach(second.TaskID, jobs.StateSnoozed)
	if n := r.count("auth"); n != 1 {
		t.Errorf("the relay was asked for %d times while the transport rests, want 1", n)
	}
	pause, err := b.mailer.PauseOf(b.ctx, b.pool, b.project)
	if err != nil || pause == nil || pause.Until.Sub(pause.RefusedAt) != 5*time.Minute || !strings.Contains(pause.Reason, "535") {
		t.Fatalf("the pause is %+v, %v", pause, err)
	}

	// The first try after the rest meets the same password: it rests on.
	b.pass(5*time.Minute + time.Second)
	b.due()
	b.await("a second try", func() bool { return r.count("auth") == 2 })
	b.reach(first.TaskID, jobs.StateSnoozed)
	b.reach(second.TaskID, jobs.StateSnoozed)
	if again, err := b.mailer.PauseOf(b.ctx, b.pool, b.project); err != nil || again.Refusals != 2 || !again.Since.Equal(pause.Since) {
		t.Errorf("the pause went on as %+v, %v", again, err)
	}

	r.answers(nil)
	b.pass(5*time.Minute + time.Second)
	b.await("both mails to be accepted", func() bool {
		b.due()
		return len(r.got()) == 2
	})
	b.reach(first.TaskID, jobs.StateCompleted)
	b.reach(second.TaskID, jobs.StateCompleted)
	stop()
	if pause, err := b.mailer.PauseOf(b.ctx, b.pool, b.project); err != nil || pause != nil {
		t.Errorf("the pause is still there: %+v, %v", pause, err)
	}
	for _, id := range []int64{first.TaskID, second.TaskID} {
		records := b.records(id)
		if last := records[len(records)-1]; last.Attempt != 1 || last.Decision != jobs.VerdictAccepted {
			t.Errorf("task %d burnt attempts: %s", id, b.ledger(id))
		}
	}
}

func TestSMTP_OtherSettingsAreNotPaused(t *testing.T) {
	t.Parallel()
	r, s, _ := newRelay(t, relayOptions{password: "right"})
	s.SMTP.Password = "wrong"
	b := setup(t, s)
	r.mu.Lock()
	r.b = b
	r.mu.Unlock()
	stop := b.start()
	q := b.notify(order("SO-1", buyer))
	b.reach(q.TaskID, jobs.StateSnoozed)
	stop()

	s.SMTP.Password = "right"
	b.startNode("node_b", b.newMailer(s), 1)
	b.due()
	b.reach(q.TaskID, jobs.StateCompleted)
}

func TestSMTP_SpeaksTLSFromTheStart(t *testing.T) {
	t.Parallel()
	b, r := setupRelay(t, relayOptions{tls: true, password: "right"})
	b.start()
	q := b.notify(order("SO-1", buyer))
	b.reach(q.TaskID, jobs.StateCompleted)
	if len(r.got()) != 1 {
		t.Errorf("the relay got %d messages", len(r.got()))
	}
}

func TestSMTP_UntrustedCertificateIsNotSpokenTo(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]relayOptions{"STARTTLS": {starttls: true}, "TLS": {tls: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, r := setupRelay(t, o)
			b.roots = nil
			b.start()
			q := b.notify(order("SO-1", buyer))
			b.reach(q.TaskID, jobs.StateRetryable)
			if rec := b.records(q.TaskID)[0]; *rec.ErrorType != "TlsError" || r.count("mail") != 0 {
				t.Errorf("the attempt ended as %s %s", *rec.ErrorType, *rec.Error)
			}
		})
	}
}

func TestSMTP_Mechanisms(t *testing.T) {
	t.Parallel()
	for method, want := range map[mailer.AuthMethod]string{mailer.AuthPlain: "PLAIN", mailer.AuthLogin: "LOGIN", mailer.AuthCRAM: "CRAM-MD5", mailer.AuthXOAUTH2: "XOAUTH2"} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			r, s, pool := newRelay(t, relayOptions{starttls: true, password: "right"})
			s.SMTP.Auth = method
			b := setup(t, s)
			b.roots = pool
			b.start()
			q := b.notify(order("SO-1", buyer))
			b.reach(q.TaskID, jobs.StateCompleted)
			r.mu.Lock()
			defer r.mu.Unlock()
			if !slices.Equal(r.auths, []string{want}) {
				t.Errorf("the mechanisms used are %v, want %s", r.auths, want)
			}
		})
	}
}

func TestSMTP_OneConnectionCarriesFiftyMessages(t *testing.T) {
	t.Parallel()
	b, r := setupRelay(t, relayOptions{})
	for i := range 51 {
		b.notify(order(fmt.Sprintf("SO-%d", i), fmt.Sprintf("buyer%d@customer.example", i)))
	}
	b.startNode("node_a", b.mailer, 1)
	b.await("51 mails", func() bool { return len(r.got()) == 51 })
	if n := r.connections(); n != 2 {
		t.Errorf("51 messages took %d connections, want 2", n)
	}
}

func TestSMTP_SlowRelayIsATimeout(t *testing.T) {
	t.Parallel()
	r, s, _ := newRelay(t, relayOptions{})
	b := setupWith(t, s, "kind: order.notification\nattempts: 6\nbackoff: {base: 5s, factor: 2, cap: 5m}\njitter: full\ntimeout: {total: 150ms}\nhorizon: 15m\n")
	gate := make(chan struct{})
	t.Cleanup(func() { close(gate) })
	r.answers(func(m moment) error {
		if m.stage == "rcpt" {
			<-gate
		}
		return nil
	})
	b.start()
	q := b.notify(order("SO-1", buyer))
	b.reach(q.TaskID, jobs.StateRetryable)
	if rec := b.records(q.TaskID)[0]; *rec.ErrorType != "Timeout" || *rec.Phase != "rcpt" || rec.Class != "network" {
		t.Errorf("the attempt ended as %s in phase %s", *rec.ErrorType, *rec.Phase)
	}
}

func TestSMTP_TwoNodesSendEachMailOnce(t *testing.T) {
	t.Parallel()
	b, r := setupRelay(t, relayOptions{})
	const mails = 40
	for i := range mails {
		b.notify(order(fmt.Sprintf("SO-%d", i), fmt.Sprintf("buyer%d@customer.example", i)))
	}
	b.startNode("node_a", b.mailer, 4)
	b.startNode("node_b", b.mailer, 4)
	b.await("every mail", func() bool { return value[int](b, `select count(*) from river_job where state = 'completed'`) == mails })
	to := map[string]int{}
	for _, m := range r.got() {
		if to[m.to]++; to[m.to] > 1 {
			t.Errorf("%s got the mail twice", m.to)
		}
	}
	if len(to) != mails {
		t.Errorf("%d recipients got a mail, want %d", len(to), mails)
	}
}
