package mailer_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"entrega/internal/tenant"
	"entrega/jobs"
	"entrega/mailer"
)

// startOfHour moves the clock to a minute's second of the next hour, and gives that hour.
func (b *bundle) startOfHour(minutes, seconds int) time.Time {
	b.t.Helper()
	hour := b.now().UTC().Truncate(time.Hour).Add(time.Hour)
	b.moveTo(hour.Add(time.Duration(minutes)*time.Minute + time.Duration(seconds)*time.Second))
	return hour
}

func (b *bundle) completed() int {
	return value[int](b, `select count(*) from river_job where state = 'completed'`)
}

func TestCap_The31stMailOfTheHourWaitsForTheNextAndIsNotLost(t *testing.T) {
	t.Parallel()
	b := setup(t, mailer.Settings{})
	hour := b.startOfHour(10, 0)
	b.start()
	for i := range 30 {
		b.notify(order(fmt.Sprintf("SO-%d", i), buyer))
	}
	b.await("30 mails", func() bool { return b.completed() == 30 })
	q := b.notify(order("SO-31", buyer))
	task := b.reach(q.TaskID, jobs.StateSnoozed)
	if task.Reason != mailer.ReasonRecipientCap {
		t.Errorf("the 31st waits because of %q", task.Reason)
	}
	if held := value[time.Time](b, `select held_until from notifications where id = $1`, q.ID); !held.Equal(hour.Add(time.Hour)) {
		t.Errorf("it waits until %v, want %v", held, hour.Add(time.Hour))
	}
	if records := b.records(q.TaskID); len(records) != 0 {
		t.Errorf("waiting left records: %v", b.ledger(q.TaskID))
	}

	// Another recipient is not concerned.
	other := b.notify(order("SO-32", "other@customer.example"))
	b.reach(other.TaskID, jobs.StateCompleted)

	b.moveTo(hour.Add(time.Hour))
	b.due()
	b.reach(q.TaskID, jobs.StateCompleted)
	if diff := cmp.Diff([]string{"1 success 250 accepted accepted *"}, b.ledger(q.TaskID)); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
}

func TestCap_EdgesOfTheHour(t *testing.T) {
	t.Parallel()
	b := setup(t, mailer.Settings{})
	hour := b.startOfHour(59, 59)
	b.start()
	for i := range 30 {
		b.notify(order(fmt.Sprintf("SO-%d", i), buyer))
	}
	b.await("30 mails", func() bool { return b.completed() == 30 })
	q := b.notify(order("SO-31", buyer))
	b.reach(q.TaskID, jobs.StateSnoozed)
	b.moveTo(hour.Add(time.Hour))
	next := b.notify(order("SO-32", buyer))
	b.reach(next.TaskID, jobs.StateCompleted)
	slots := map[time.Time]int{}
	rows, err := b.pool.Query(b.ctx, `select hour, used from mail_slots where scope = ''`)
	if err != nil {
		t.Fatal(err)
	}
	var at time.Time
	var used int
	if _, err := pgx.ForEachRow(rows, []any{&at, &used}, func() error { slots[at.UTC()] = used; return nil }); err != nil {
		t.Fatal(err)
	}
	if slots[hour] != 30 || slots[hour.Add(time.Hour)] != 1 || len(slots) != 2 {
		t.Errorf("the slots are %v", slots)
	}
}

func TestCap_RetryKeepsItsSlot(t *testing.T) {
	t.Parallel()
	b, r := setupRelay(t, relayOptions{})
	b.startOfHour(10, 0)
	r.answers(at("rcpt", reply(450, 4, 2, 0, "greylisted")))
	b.start()
	q := b.notify(order("SO-1", buyer))
	b.reach(q.TaskID, jobs.StateRetryable)
	r.answers(nil)
	b.due()
	b.reach(q.TaskID, jobs.StateCompleted)
	if used := value[int](b, `select used from mail_slots where scope = ''`); used != 1 {
		t.Errorf("two attempts took %d slots, want 1", used)
	}
}

// askAccess makes a user who asks to join the project, with an owner there who is told.
func (b *bundle) askAccess(email string) tenant.AccessRequest {
	b.t.Helper()
	user, err := b.accounts.CreateUser(b.ctx, tenant.CLI("test"), tenant.NewUser{Email: email})
	if err != nil {
		b.t.Fatal(err)
	}
	var request tenant.AccessRequest
	request, err = tenant.RequestAccess(b.ctx, b.pool, tenant.ActorOf(user), b.project, "please", func(tx pgx.Tx, r tenant.AccessRequest) error {
		return b.mailer.NotifyOwnersTx(b.ctx, tx, r, "https://entrega.example/team")
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return request
}

func (b *bundle) addOwner(email string) {
	b.t.Helper()
	if _, err := b.accounts.CreateUser(b.ctx, tenant.CLI("test"), tenant.NewUser{Email: email}); err != nil {
		b.t.Fatal(err)
	}
	if _, err := tenant.AddMember(b.ctx, b.pool, tenant.CLI("test").In(b.project), b.project, email, tenant.RoleOwner); err != nil {
		b.t.Fatal(err)
	}
}

func TestCap_SixthNoticeToAnOwnerIsDroppedAndVisible(t *testing.T) {
	t.Parallel()
	b := setup(t, mailer.Settings{})
	b.startOfHour(10, 0)
	b.addOwner("ines@shop.example")
	b.startNode("node_a", b.mailer, 1)
	for i := range 6 {
		b.askAccess(fmt.Sprintf("user%d@customer.example", i))
	}
	b.await("all notices", func() bool {
		return value[int](b, `select count(*) from river_job where finalized_at is not null`) == 6
	})
	id := value[int64](b, `select max(id) from river_job`)
	if task := b.task(id); task.State != jobs.StateDiscarded || task.Reason != mailer.ReasonBurstCap {
		t.Errorf("the 6th notice is %s, %s", task.State, task.Reason)
	}
	if b.completed() != 5 {
		t.Errorf("%d notices were accepted, want 5", b.completed())
	}
	if diff := cmp.Diff([]string{"1 unknown 0 permanent_failure dropped_burst_cap *"}, b.ledger(id)); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
	if reason := value[string](b, `select ended_reason from notifications where task_id = $1`, id); reason != mailer.ReasonBurstCap {
		t.Errorf("the notification ended as %q", reason)
	}
}
