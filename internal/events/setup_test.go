package events

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"entrega/internal/store/storetest"
	"entrega/jobs"
)

// bundle is a fresh database with one project in it.
type bundle struct {
	ctx     context.Context
	pool    *pgxpool.Pool
	project string
}

func setup(t *testing.T) bundle {
	t.Helper()
	b := bundle{ctx: t.Context(), pool: storetest.New(t, jobs.MigrateDSN)}
	b.project = b.newProject(t)
	return b
}

func (b bundle) newProject(t *testing.T) string {
	t.Helper()
	return scan[string](t, b, `insert into projects (id, name) values ('project_' || gen_random_uuid(), 'Test') returning id`)
}

func (b bundle) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := b.pool.Exec(b.ctx, sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// scan reads the one value that sql answers.
func scan[T any](t *testing.T, b bundle, sql string, args ...any) T {
	t.Helper()
	var v T
	if err := b.pool.QueryRow(b.ctx, sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// publish stores an event that nothing is wrong with.
func (b bundle) publish(t *testing.T, id string) {
	t.Helper()
	if _, err := Publish(b.ctx, b.pool, b.project, newOrder(id)); err != nil {
		t.Fatalf("publish %s: %v", id, err)
	}
}

func newOrder(id string) New {
	return New{ID: id, Type: "order.created", Data: []byte(`{"order":1}`)}
}

// waitFor asks until the answer is yes, for what other sessions do unseen.
func (b bundle) waitFor(t *testing.T, what, sql string, args ...any) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !scan[bool](t, b, sql, args...) {
		if time.Now().After(deadline) {
			t.Fatalf("waited 10 s for: %s", what)
		}
	}
}
