package mailer_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/jobs"
	"entrega/mailer"
)

func TestNotify_RefusesInjectionAtItsField(t *testing.T) {
	t.Parallel()
	b := setup(t, mailer.Settings{})
	good := order("SO-1", buyer)
	for name, tt := range map[string]struct {
		change func(n *mailer.New)
		field  string
	}{
		"a header in the subject":      {func(n *mailer.New) { n.Subject = "Hi\r\nBcc: all@elsewhere.example" }, "subject"},
		"a bare line feed":             {func(n *mailer.New) { n.Subject = "Hi\nX: y" }, "subject"},
		"a line separator":             {func(n *mailer.New) { n.Subject = "Hi\u2028X: y" }, "subject"},
		"a zero byte":                  {func(n *mailer.New) { n.Subject = "Hi\x00" }, "subject"},
		"a long subject":               {func(n *mailer.New) { n.Subject = strings.Repeat("x", 201) }, "subject"},
		"no subject":                   {func(n *mailer.New) { n.Subject = " " }, "subject"},
		"a second recipient":           {func(n *mailer.New) { n.To = "a@shop.example, b@shop.example" }, "to"},
		"a recipient with a name":      {func(n *mailer.New) { n.To = "Ines <a@shop.example>" }, "to"},
		"a command in the recipient":   {func(n *mailer.New) { n.To = "a@shop.example>\r\nRCPT TO:<b@shop.example" }, "to"},
		"a recipient without a domain": {func(n *mailer.New) { n.To = "root" }, "to"},
		"a quoted local part":          {func(n *mailer.New) { n.To = `"a b"@shop.example` }, "to"},
		"no order":                     {func(n *mailer.New) { n.OrderID = "" }, "orderId"},
		"a line break in the order":    {func(n *mailer.New) { n.OrderID = "SO\n1" }, "orderId"},
		"no text":                      {func(n *mailer.New) { n.Text = "\n" }, "text"},
		"a text that is not UTF-8":     {func(n *mailer.New) { n.Text = "\xff" }, "text"},
		"a text that is too long":      {func(n *mailer.New) { n.Text = strings.Repeat("x", mailer.MaxBodyBytes+1) }, "text"},
		"a line break in the key":      {func(n *mailer.New) { n.IdempotencyKey = "k\r\nX: y" }, "idempotencyKey"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := good
			tt.change(&n)
			_, err := b.mailer.Notify(b.ctx, b.owner, b.project, n)
			var invalid *store.InvalidError
			if !errors.As(err, &invalid) || invalid.Sentence(tt.field) == "" {
				t.Errorf("answered %v, want a problem at %s", err, tt.field)
			}
		})
	}
}

func TestNotify_IsStoredBeforeAnyWorkerCanClaimIt(t *testing.T) {
	t.Parallel()
	b := setup(t, mailer.Settings{})
	q := b.notify(order("SO-1", buyer))
	if task := value[int64](b, `select task_id from notifications where id = $1 and accepted_at is null`, q.ID); task != q.TaskID {
		t.Errorf("the notification has the task %d, want %d", task, q.TaskID)
	}
}

func TestNotify_KeyAnswersTheFirstNotification(t *testing.T) {
	t.Parallel()
	b := setup(t, mailer.Settings{})
	n := order("SO-1", buyer)
	n.IdempotencyKey = "key-1"
	var mu sync.Mutex
	ids := map[string]int{}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			q, err := b.mailer.Notify(b.ctx, b.owner, b.project, n)
			if err != nil {
				t.Errorf("notify: %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			ids[q.ID]++
		})
	}
	all.Wait()
	if tasks := value[int](b, `select count(*) from river_job`); len(ids) != 1 || tasks != 1 {
		t.Errorf("one key made %d notifications and %d tasks", len(ids), tasks)
	}
	n.Text = "something else"
	if _, err := b.mailer.Notify(b.ctx, b.owner, b.project, n); !jobs.IsConflict(err, mailer.CodeMismatch) {
		t.Errorf("another content is answered %v", err)
	}
}

func TestErase_ForgetsTheAddressAndEveryContent(t *testing.T) {
	t.Parallel()
	b := setup(t, mailer.Settings{})
	b.start()
	q := b.notify(order("SO-1", buyer))
	b.reach(q.TaskID, jobs.StateCompleted)
	erased, err := b.mailer.EraseRecipient(b.ctx, b.owner, b.project, strings.ToUpper(buyer))
	if err != nil || erased != (mailer.Erased{Notifications: 1, Captured: 1}) {
		t.Fatalf("erased %+v, %v", erased, err)
	}
	if left := value[string](b, `select coalesce(string_agg(n::text, ''), '') || (select count(*) from mail_recipients) || (select count(*) from captured_mails) from notifications n`); strings.Contains(left, "buyer") || strings.Contains(left, "new order") || !strings.HasSuffix(left, "00") {
		t.Errorf("left: %s", left)
	}
	if records := b.records(q.TaskID); len(records) != 1 || len(records[0].RecipientRef) != 32 {
		t.Errorf("the ledger lost the attempt: %+v", records)
	}
	if _, err := b.mailer.SendAgain(b.ctx, b.owner, b.project, q.ID); !jobs.IsConflict(err, "erased") {
		t.Errorf("sending it again is answered %v", err)
	}
	viewer := tenant.Actor{Kind: tenant.ActorUser, ID: "user_viewer", ProjectID: b.project, Role: tenant.RoleViewer}
	if _, err := b.mailer.EraseRecipient(b.ctx, viewer, b.project, buyer); !errors.Is(err, tenant.ErrForbidden) {
		t.Errorf("a viewer is answered %v", err)
	}
}
