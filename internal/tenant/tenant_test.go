package tenant_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"entrega/internal/store"
	"entrega/internal/store/storetest"
	"entrega/internal/tenant"
	"entrega/jobs"
)

// goodPassword is one that CheckPassword accepts for every user of the tests.
const goodPassword = "correct horse battery staple"

// bundle is a database of its own, and what works on it.
type bundle struct {
	pool     *pgxpool.Pool
	accounts *tenant.Accounts
	clock    *clock
}

func setup(t *testing.T) bundle {
	t.Helper()
	pool := storetest.New(t, jobs.MigrateDSN)
	c := &clock{now: time.Now().UTC().Truncate(time.Microsecond)}
	return bundle{
		pool:  pool,
		clock: c,
		accounts: tenant.NewAccounts(tenant.AccountsOptions{
			Pool:      pool,
			Passwords: tenant.NewPasswords(tenant.Argon2Params{Time: 1, MemoryKiB: 64, Threads: 1}),
			Now:       c.Now,
		}),
	}
}

// clock is a time that a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// user makes a user with goodPassword.
func (b bundle) user(t *testing.T, email string) tenant.User {
	t.Helper()
	user, err := b.accounts.CreateUser(t.Context(), tenant.CLI("test"), tenant.NewUser{Email: email, Password: goodPassword})
	if err != nil {
		t.Fatalf("CreateUser(%s): %v", email, err)
	}
	return user
}

// project makes a project with an owner, and returns the owner as its actor.
func (b bundle) project(t *testing.T, name string) (tenant.Project, tenant.Actor) {
	t.Helper()
	owner := b.user(t, "owner@"+name+".example")
	project, err := tenant.CreateProject(t.Context(), b.pool, tenant.ActorOf(owner), tenant.NewProject{Name: name, OwnerID: owner.ID})
	if err != nil {
		t.Fatalf("CreateProject(%s): %v", name, err)
	}
	return project, b.actor(t, owner.ID, project.ID)
}

// member adds a new user to a project, and returns it as an actor.
func (b bundle) member(t *testing.T, projectID, email string, role tenant.Role) tenant.Actor {
	t.Helper()
	user := b.user(t, email)
	if _, err := tenant.AddMember(t.Context(), b.pool, tenant.CLI("test"), projectID, email, role); err != nil {
		t.Fatalf("AddMember(%s): %v", email, err)
	}
	return b.actor(t, user.ID, projectID)
}

func (b bundle) actor(t *testing.T, userID, projectID string) tenant.Actor {
	t.Helper()
	actor, err := tenant.ActorInProject(t.Context(), b.pool, userID, projectID)
	if err != nil {
		t.Fatalf("ActorInProject: %v", err)
	}
	return actor
}

func (b bundle) admin(t *testing.T, email string) tenant.Actor {
	t.Helper()
	user, err := b.accounts.CreateUser(t.Context(), tenant.CLI("test"), tenant.NewUser{Email: email, Admin: true})
	if err != nil {
		t.Fatalf("CreateUser(%s): %v", email, err)
	}
	return tenant.ActorOf(user)
}

// actions lists what the audit log of a project holds, oldest first; an empty projectID means the installation.
func (b bundle) actions(t *testing.T, projectID string) []string {
	t.Helper()
	rows, err := b.pool.Query(t.Context(), `select action from audit_log where coalesce(project_id, '') = $1 order by id`, projectID)
	if err != nil {
		t.Fatal(err)
	}
	actions, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return actions
}

// count runs a query that answers one number.
func (b bundle) count(t *testing.T, sql string, args ...any) int {
	t.Helper()
	var n int
	if err := b.pool.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func (b bundle) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := b.pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// atOnce runs fn n times in parallel, all started together, and returns their errors.
func atOnce(n int, fn func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var done sync.WaitGroup
	for i := range n {
		done.Go(func() {
			<-start
			errs[i] = fn(i)
		})
	}
	close(start)
	done.Wait()
	return errs
}

// queued runs fn n times at once behind a lock: all of them have gone as far as they can, and wait in the database for the
// rows that lock names, before any of them goes on. So each has read what it reads without a lock.
func (b bundle) queued(t *testing.T, lock string, n int, fn func(i int) error) []error {
	t.Helper()
	var errs []error
	done := make(chan struct{})
	err := store.InTx(t.Context(), b.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), lock); err != nil {
			return err
		}
		go func() {
			defer close(done)
			errs = atOnce(n, fn)
		}()
		for waiting := 0; waiting < n; {
			select {
			case <-done:
				return fmt.Errorf("only %d of %d waited for the lock", waiting, n)
			default:
			}
			// Not in tx, which would see the same activity until its end.
			waiting = b.count(t, `
				select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("queue behind a lock: %v", err)
	}
	<-done
	return errs
}

func countNil(errs []error) int {
	n := 0
	for _, err := range errs {
		if err == nil {
			n++
		}
	}
	return n
}

// wantConflict checks that err is a *store.ConflictError with a code and a sentence.
func wantConflict(t *testing.T, err error, code string) {
	t.Helper()
	var conflict *store.ConflictError
	if !errors.As(err, &conflict) || conflict.Code != code || conflict.Sentence == "" {
		t.Errorf("error is %v (%T), want a conflict %q with a sentence", err, err, code)
	}
}

// wantInvalid checks that err is a *store.InvalidError of exactly these fields.
func wantInvalid(t *testing.T, err error, fields ...string) {
	t.Helper()
	var invalid *store.InvalidError
	if !errors.As(err, &invalid) {
		t.Errorf("error is %v (%T), want an InvalidError of %v", err, err, fields)
		return
	}
	var got []string
	for _, f := range invalid.Fields {
		got = append(got, f.Field)
		if f.Sentence == "" {
			t.Errorf("field %s has no sentence", f.Field)
		}
	}
	if !slices.Equal(got, fields) {
		t.Errorf("invalid fields are %v, want %v", got, fields)
	}
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error is %v, want %v", what, err, want)
	}
}

func (b bundle) link(t *testing.T, make func(context.Context) (string, error)) string {
	t.Helper()
	token, err := make(t.Context())
	if err != nil {
		t.Fatalf("make a link: %v", err)
	}
	return token
}

func (b bundle) confirmation(t *testing.T, userID string) string {
	t.Helper()
	token, err := b.accounts.ConfirmationLink(t.Context(), userID)
	if err != nil {
		t.Fatalf("ConfirmationLink: %v", err)
	}
	return token
}
