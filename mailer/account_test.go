package mailer_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/jobs"
	"entrega/mailer"
)

func TestAccount_OwnersAreToldAndTheRequestIsMarkedAfterAcceptance(t *testing.T) {
	t.Parallel()
	b, r := setupRelay(t, relayOptions{})
	b.addOwner("ines@shop.example")
	request := b.askAccess("user@customer.example")
	if value[bool](b, `select notified_at is not null from access_requests where id = $1`, request.ID) {
		t.Error("the request is marked before anything was sent")
	}
	b.start()
	b.await("the notice", func() bool { return len(r.got()) == 1 })
	b.await("the mark", func() bool {
		return value[bool](b, `select notified_at is not null from access_requests where id = $1`, request.ID)
	})
	if m := r.got()[0]; m.to != "ines@shop.example" || !strings.Contains(m.raw, "https://entrega.example/team") || !strings.Contains(m.raw, "> please") {
		t.Errorf("the notice is %+v", m)
	}
}

func TestAccount_ApprovalIsRepliedToOnlyAfterAcceptance(t *testing.T) {
	t.Parallel()
	b, r := setupRelay(t, relayOptions{})
	b.addOwner("ines@shop.example")
	request := b.askAccess("user@customer.example")
	r.answers(at("dot", reply(451, 4, 3, 0, "later")))
	b.start()
	_, err := tenant.ApproveAccess(b.ctx, b.pool, b.owner, b.project, request.ID, tenant.RoleOnCall, func(tx pgx.Tx, r tenant.AccessRequest) error {
		return b.mailer.NotifyApprovedTx(b.ctx, tx, r, "https://entrega.example/p")
	})
	if err != nil {
		t.Fatal(err)
	}
	id := value[int64](b, `select task_id from notifications where kind = 'access_request.approval_mail'`)
	b.reach(id, jobs.StateRetryable)
	if state := value[string](b, `select mail_state || coalesce(replied_at::text, '') from access_requests where id = $1`, request.ID); state != "sending" {
		t.Errorf("while the mail is under way the request is %q", state)
	}
	r.answers(nil)
	b.due()
	b.reach(id, jobs.StateCompleted)
	if state := value[string](b, `select mail_state from access_requests where id = $1 and replied_at is not null`, request.ID); state != "sent" {
		t.Errorf("the request is %q", state)
	}
}

func TestAccount_NoRequestNoMail(t *testing.T) {
	t.Parallel()
	b := setup(t, mailer.Settings{})
	b.addOwner("ines@shop.example")
	user, err := b.accounts.CreateUser(b.ctx, tenant.CLI("test"), tenant.NewUser{Email: "user@customer.example"})
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	_, err = tenant.RequestAccess(b.ctx, b.pool, tenant.ActorOf(user), b.project, "", func(tx pgx.Tx, r tenant.AccessRequest) error {
		return errors.Join(b.mailer.NotifyOwnersTx(b.ctx, tx, r, "https://entrega.example/team"), broken)
	})
	if !errors.Is(err, broken) {
		t.Fatal(err)
	}
	if n := value[int](b, `select (select count(*) from notifications) + (select count(*) from access_requests) + (select count(*) from river_job)`); n != 0 {
		t.Errorf("%d rows are left of a request that failed", n)
	}
}

func TestAccount_ConfirmationMakesItsLinkWhenSentAndOnce(t *testing.T) {
	t.Parallel()
	b, r := setupRelay(t, relayOptions{})
	user, err := b.accounts.SignUp(b.ctx, "new@customer.example", "192.0.2.1", func(tx pgx.Tx, u tenant.User) error { return b.mailer.ConfirmTx(b.ctx, tx, u) })
	if err != nil {
		t.Fatal(err)
	}
	if n := value[int](b, `select count(*) from one_time_links`); n != 0 {
		t.Errorf("%d links before the mail is sent", n)
	}
	r.answers(func(m moment) error {
		if m.stage == "dot" && m.n == 1 {
			return errDrop
		}
		return nil
	})
	b.start()
	b.await("the first copy", func() bool {
		return value[int](b, `select count(*) from river_job where state = 'retryable' or state = 'available' and attempt = 1`) == 1
	})
	if strings.Contains(value[string](b, `select n::text from notifications n`), b.links[0]) {
		t.Error("the link is kept in the clear")
	}
	b.due()
	b.await("the second copy", func() bool { return len(r.got()) == 2 })
	b.await("the mark", func() bool {
		return value[bool](b, `select confirmation_sent_at is not null from users where id = $1`, user.ID)
	})
	got := r.got()
	if len(b.links) != 1 || got[0].raw != got[1].raw {
		t.Errorf("%d links were made, and the copies are the same: %v", len(b.links), got[0].raw == got[1].raw)
	}
	token := b.links[0][strings.LastIndexByte(b.links[0], '/')+1:]
	if link, err := b.accounts.Link(b.ctx, tenant.LinkConfirmEmail, token); err != nil || link.UserID != user.ID {
		t.Errorf("the link is %+v, %v", link, err)
	}
	if value[bool](b, `select link_sealed is not null from notifications`) {
		t.Error("the link is kept after the mail was accepted")
	}
}

func TestAccount_ConfirmedBeforeItsTurnIsNotSent(t *testing.T) {
	t.Parallel()
	b, r := setupRelay(t, relayOptions{})
	if _, err := b.accounts.SignUp(b.ctx, "new@customer.example", "192.0.2.1", func(tx pgx.Tx, u tenant.User) error { return b.mailer.ConfirmTx(b.ctx, tx, u) }); err != nil {
		t.Fatal(err)
	}
	b.exec(`update users set email_confirmed_at = now()`)
	b.start()
	b.await("the end", func() bool {
		return value[int](b, `select count(*) from notifications where ended_reason = 'already_confirmed'`) == 1
	})
	if len(r.got()) != 0 {
		t.Error("a mail was sent")
	}
}

func TestAccount_NewAddressGetsTheLink(t *testing.T) {
	t.Parallel()
	b, r := setupRelay(t, relayOptions{})
	user, err := b.accounts.CreateUser(b.ctx, tenant.CLI("test"), tenant.NewUser{Email: "old@customer.example"})
	if err != nil {
		t.Fatal(err)
	}
	var invalid *store.InvalidError
	if err := b.mailer.ConfirmAddress(b.ctx, tenant.ActorOf(user), user, "OLD@customer.example"); !errors.As(err, &invalid) {
		t.Errorf("the same address is answered %v", err)
	}
	if err := b.mailer.ConfirmAddress(b.ctx, tenant.ActorOf(user), user, "fresh@customer.example"); err != nil {
		t.Fatal(err)
	}
	b.start()
	b.await("the mail", func() bool { return len(r.got()) == 1 })
	token := b.links[0][strings.LastIndexByte(b.links[0], '/')+1:]
	moved, err := b.accounts.ChangeEmail(b.ctx, token)
	if err != nil || moved.Email != "fresh@customer.example" || r.got()[0].to != "fresh@customer.example" {
		t.Errorf("the user moved to %q, %v", moved.Email, err)
	}
}
