package mailer_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// watch makes every change of a task's state a signal, by a trigger that only tests have.
func (b *bundle) watch() {
	b.t.Helper()
	_, err := b.pool.Exec(b.ctx, `
		create function test_task_changed() returns trigger language plpgsql as $$
		begin
			perform pg_notify('test_task', '');
			return null;
		end $$;
		create trigger test_task_changed after update of state, scheduled_at on river_job for each row execute function test_task_changed()`)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.ctx))
	listening, done := make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() { close(listening) })
	go func() {
		defer close(done)
		err := store.Listen(ctx, b.pool, "test_task", func(string) {
			first()
			b.signal()
		})
		if err != nil && !errors.Is(err, context.Canceled) {
			b.t.Errorf("listen for tasks: %v", err)
		}
		first()
	}()
	<-listening
	b.t.Cleanup(func() {
		cancel()
		<-done
	})
}

// signal wakes whoever awaits something. Receivers call it too, after each request.
func (b *bundle) signal() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *bundle) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

// await looks again whenever a task has changed or a receiver was called, until ok holds.
func (b *bundle) await(what string, ok func() bool) {
	b.t.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		changed := b.next()
		if ok() {
			return
		}
		select {
		case <-changed:
		case <-timeout.C:
			b.t.Fatalf("waited in vain for %s; tasks:\n%s", what, b.tasks())
		}
	}
}

// tasks writes down all tasks, for a failed test.
func (b *bundle) tasks() string {
	rows, err := b.pool.Query(b.ctx, `
		select format('%s %s %s attempt=%s at=%s %s %s', id, kind, state, attempt, scheduled_at, metadata ->> 'reason', metadata -> 'last') from river_job order by id limit 40`)
	if err != nil {
		return err.Error()
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(lines)
}
