package mailer_test

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"entrega/internal/egress"
	"entrega/internal/seal"
	"entrega/internal/store/storetest"
	"entrega/internal/tenant"
	"entrega/jobs"
	"entrega/mailer"
)

// patience is how long a test waits for what should happen at once, on a machine that is busy with other tests.
const patience = 30 * time.Second

var quiet = slog.New(slog.DiscardHandler)

// bundle is one test's own installation: database, project, a way out for mail, and a clock that the test moves.
type bundle struct {
	t        *testing.T
	ctx      context.Context
	pool     *pgxpool.Pool
	policies *jobs.PolicySet
	client   *jobs.Client
	accounts *tenant.Accounts
	mailer   *mailer.Mailer
	roots    *x509.CertPool
	project  string
	owner    tenant.Actor

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when a task changes
	ahead   time.Duration // how far the clock is ahead of the machine's
	fixed   time.Time     // where the clock stands still; zero when it runs
	links   []string
}

func setup(t *testing.T, s mailer.Settings) *bundle { return setupWith(t, s, "") }

// setupWith lets the mail of the installation leave by s, under policies that override the shipped ones.
func setupWith(t *testing.T, s mailer.Settings, policies string) *bundle {
	t.Helper()
	b := &bundle{t: t, ctx: t.Context(), pool: storetest.New(t, jobs.MigrateDSN), changed: make(chan struct{})}
	file := ""
	if policies != "" {
		file = filepath.Join(t.TempDir(), "policies.yaml")
		if err := os.WriteFile(file, []byte(policies), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if b.policies, err = jobs.LoadPolicies(file); err != nil {
		t.Fatal(err)
	}
	if err := b.policies.StoreVersions(b.ctx, b.pool); err != nil {
		t.Fatal(err)
	}
	if b.client, err = jobs.NewClient(jobs.ClientOptions{Pool: b.pool, Policies: b.policies, Logger: quiet}); err != nil {
		t.Fatal(err)
	}
	b.accounts = tenant.NewAccounts(tenant.AccountsOptions{Pool: b.pool, Passwords: tenant.NewPasswords(tenant.Argon2Params{Time: 1, MemoryKiB: 64, Threads: 1})})
	b.mailer = b.newMailer(s)
	p, err := tenant.CreateProject(b.ctx, b.pool, tenant.CLI("test"), tenant.NewProject{Name: "Shop"})
	if err != nil {
		t.Fatal(err)
	}
	b.project = p.ID
	b.owner = tenant.Actor{Kind: tenant.ActorUser, ID: "user_owner", Name: "owner@example.com", ProjectID: p.ID, Role: tenant.RoleOwner}
	b.watch()
	return b
}

// newMailer is what a node has after it was started with these settings.
func (b *bundle) newMailer(s mailer.Settings) *mailer.Mailer {
	b.t.Helper()
	if s.From == "" {
		s.From = "Shop <mail@shop.example>"
	}
	m, err := mailer.NewMailer(mailer.MailerOptions{Pool: b.pool, Client: b.client, Box: b.box(), Installation: s, Door: b.door(s), Logger: quiet, Now: b.now})
	if err != nil {
		b.t.Fatal(err)
	}
	return m
}

// box seals with a key that is the same for all of a test's mailers.
func (b *bundle) box() *seal.Box {
	b.t.Helper()
	box, err := seal.New([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		b.t.Fatal(err)
	}
	return box
}

// door may call loopback addresses, on the relay's port as well.
func (b *bundle) door(s mailer.Settings) *egress.Door {
	b.t.Helper()
	list := []string{"127.0.0.1"}
	if s.Kind == mailer.SMTP {
		list = append(list, fmt.Sprintf("%s:%d", s.SMTP.Host, s.SMTP.Port))
	}
	allow, err := egress.ParseAllow(list...)
	if err != nil {
		b.t.Fatal(err)
	}
	door, err := egress.New(egress.Options{Allow: allow, AllowHTTP: true})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(door.Close)
	return door
}

func (b *bundle) now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.fixed.IsZero() {
		return b.fixed
	}
	return time.Now().Add(b.ahead)
}

// pass moves the clock of caps and pauses.
func (b *bundle) pass(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ahead += d
}

// moveTo stops the clock of caps and pauses at an instant.
func (b *bundle) moveTo(at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fixed = at
}

// start runs a node until the test ends or stop is called.
func (b *bundle) start() (stop func()) { return b.startNode("node_a", b.mailer, 4) }

func (b *bundle) startNode(id string, m *mailer.Mailer, workers int) (stop func()) {
	b.t.Helper()
	sender := mailer.NewSender(mailer.SenderOptions{Mailer: m, Links: b, RootCAs: b.roots})
	ledger := jobs.NewLedger(jobs.LedgerOptions{Pool: b.pool, Logger: quiet})
	worker, err := jobs.NewWorker(jobs.WorkerOptions{Client: b.client, Pool: b.pool, Ledger: ledger, Logger: quiet, NodeID: id, Version: "test", Testing: true,
		Queues: map[string]jobs.QueueConfig{jobs.QueueNotify: {Workers: workers, Cooldown: 5 * time.Millisecond, Poll: 20 * time.Millisecond}}},
		sender.Registrations()...)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := worker.Start(b.ctx); err != nil {
		b.t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(b.ctx), patience)
		defer cancel()
		if err := worker.Stop(ctx); err != nil {
			b.t.Errorf("stop the worker: %v", err)
		}
		sender.Close()
		ledger.Close()
	})
	b.t.Cleanup(stop)
	return stop
}

// ConfirmationLink makes a link and remembers it.
func (b *bundle) ConfirmationLink(ctx context.Context, userID string) (string, error) {
	token, err := b.accounts.ConfirmationLink(ctx, userID)
	return b.link("confirm", token), err
}

// ChangeEmailLink makes a link and remembers it.
func (b *bundle) ChangeEmailLink(ctx context.Context, userID, email string) (string, error) {
	token, err := b.accounts.ChangeEmailLink(ctx, userID, email)
	return b.link("change", token), err
}

func (b *bundle) link(what, token string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	link := "https://entrega.example/" + what + "/" + token
	b.links = append(b.links, link)
	return link
}

// order is a notification that has nothing wrong with it.
func order(id, to string) mailer.New {
	return mailer.New{OrderID: id, To: to, Subject: "New order " + id, Text: "You have a new order: " + id + ".\n"}
}

func (b *bundle) notify(n mailer.New) mailer.Queued {
	b.t.Helper()
	q, err := b.mailer.Notify(b.ctx, b.owner, b.project, n)
	if err != nil {
		b.t.Fatal(err)
	}
	return q
}

func (b *bundle) task(id int64) jobs.Task {
	b.t.Helper()
	task, err := b.client.TaskByID(b.ctx, b.pool, b.project, id)
	if err != nil {
		b.t.Fatal(err)
	}
	return task
}

// reach waits until a task is in a state.
func (b *bundle) reach(id int64, state jobs.TaskState) jobs.Task {
	b.t.Helper()
	var task jobs.Task
	b.await(fmt.Sprintf("task %d to be %s", id, state), func() bool {
		task = b.task(id)
		return task.State == state
	})
	return task
}

// due moves time for the tasks that wait: their turn is now.
func (b *bundle) due() {
	b.t.Helper()
	b.exec(`update river_job set state = 'available', scheduled_at = now() - interval '1 second'
		where queue = 'notify' and (state in ('retryable', 'scheduled') or state = 'available' and scheduled_at > now())`)
}

func (b *bundle) records(id int64) []jobs.Record {
	b.t.Helper()
	records, err := jobs.AttemptsOfTask(b.ctx, b.pool, b.project, id)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := jobs.VerifyChain(records); err != nil {
		b.t.Error(err)
	}
	return records
}

// ledger writes a task's records as "attempt class status decision reason", charged ones with a star.
func (b *bundle) ledger(id int64) []string {
	b.t.Helper()
	var out []string
	for _, r := range b.records(id) {
		status := 0
		if r.Status != nil {
			status = *r.Status
		}
		line := fmt.Sprintf("%d %s %d %s %s", r.Attempt, r.Class, status, r.Decision, r.Reason)
		if r.Charged {
			line += " *"
		}
		out = append(out, line)
	}
	return out
}

// value reads one value.
func value[T any](b *bundle, sql string, args ...any) T {
	b.t.Helper()
	var v T
	if err := b.pool.QueryRow(b.ctx, sql, args...).Scan(&v); err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func (b *bundle) exec(sql string, args ...any) {
	b.t.Helper()
	if _, err := b.pool.Exec(b.ctx, sql, args...); err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}
}

// wantNowhere looks for a text in everything that attempts leave behind.
func (b *bundle) wantNowhere(text string) {
	b.t.Helper()
	kept := value[string](b, `select coalesce((select string_agg(e::text || coalesce(convert_from(e.response_body, 'UTF8'), ''), ' ') from attempt_excerpts e), '')
		|| coalesce((select string_agg(a::text, ' ') from attempts a), '') || coalesce((select string_agg(l::text, ' ') from audit_log l), '')
		|| coalesce((select string_agg(j.metadata::text || coalesce(array_to_string(j.errors, ' '), ''), ' ') from river_job j), '')
		|| coalesce((select string_agg(s.detail, ' ') from mail_suppressions s), '') || coalesce((select string_agg(f.detail, ' ') from mail_feedback f), '')`)
	if strings.Contains(strings.ToLower(kept), text) {
		b.t.Errorf("%q was kept", text)
	}
}
