package web_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"entrega/jobs"
)

// withPeriodic serves the panel anew with these jobs, and works them until the test ends.
func (p *panel) withPeriodic(all ...jobs.Periodic) {
	p.t.Helper()
	p.periodic = all
	p.serve("http")
	ledger := jobs.NewLedger(jobs.LedgerOptions{Pool: p.pool, Logger: quiet})
	worker, err := jobs.NewWorker(jobs.WorkerOptions{Client: p.client, Pool: p.pool, Ledger: ledger, Logger: quiet, Version: "test", Testing: true, Periodic: all,
		Queues: map[string]jobs.QueueConfig{jobs.QueueMaintenance: {Workers: 2, Cooldown: 5 * time.Millisecond, Poll: 20 * time.Millisecond}}})
	if err != nil {
		p.t.Fatal(err)
	}
	if err := worker.Start(p.ctx); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(p.ctx), patience)
		defer stop()
		if err := worker.Stop(ctx); err != nil {
			p.t.Errorf("stop the worker: %v", err)
		}
		ledger.Close()
	})
}

// until loads a page until it is as wanted.
func (b *browser) until(path, what string, is func(*page) bool) *page {
	b.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		if page := b.open(path); is(page) {
			return page
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("waited in vain for %s", what)
		}
	}
}

func TestPeriodic_ShowsTheLastRunAndRunsNow(t *testing.T) {
	t.Parallel()
	p := setup(t)
	began, finish := make(chan struct{}), make(chan struct{})
	p.withPeriodic(
		jobs.Periodic{Name: "people.sweep", About: "Removes what has expired.", Every: time.Hour, Do: func(ctx context.Context) error {
			select {
			case began <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
			select {
			case <-finish:
			case <-ctx.Done():
				return ctx.Err()
			}
			return nil
		}},
		jobs.Periodic{Name: "ledger.partitions", About: "Makes partitions.", Every: 6 * time.Hour, Do: func(context.Context) error {
			return errors.New("dial tcp 10.0.0.7:5432: connection refused")
		}},
	)
	admin, owner := p.as("admin"), p.as("owner")
	path := "/p/" + p.ours.ID + "/periodic"
	fresh := admin.open(path)
	if row := fresh.rows()["people.sweep"]; !strings.Contains(row, "Removes what has expired.") || !strings.Contains(row, "every hour") || !strings.Contains(row, "not yet") {
		t.Errorf("before any run the row reads %q", row)
	}

	queued := admin.submit(fresh, path+"/people.sweep/run", nil)
	if !strings.Contains(queued.flash(), "A run of people.sweep is queued.") {
		t.Errorf("flash %q", queued.flash())
	}
	<-began
	running := admin.until(path, "the run under way", func(page *page) bool { return strings.Contains(page.rows()["people.sweep"], "running") })
	if running.form(path+"/people.sweep/run") != nil {
		t.Error("a job that runs is offered to run")
	}
	again := admin.post(path+"/people.sweep/run", map[string][]string{"return": {path}})
	if flash := admin.open(again.location).flash(); !strings.Contains(flash, "is queued or under way already") {
		t.Errorf("a second run: flash %q", flash)
	}
	close(finish)
	admin.until(path, "the run's end", func(page *page) bool { return strings.Contains(page.rows()["people.sweep"], "done in") })

	admin.submit(admin.open(path), path+"/ledger.partitions/run", nil)
	failed := admin.until(path, "the failure", func(page *page) bool { return strings.Contains(page.rows()["ledger.partitions"], "1 failure") })
	if row := failed.rows()["ledger.partitions"]; !strings.Contains(row, "connection refused") {
		t.Errorf("the admin's row reads %q, want why it failed", row)
	}
	theirs := owner.open(path)
	if row := theirs.rows()["ledger.partitions"]; strings.Contains(row, "10.0.0.7") || !strings.Contains(row, "An admin can see why.") || theirs.form(path+"/ledger.partitions/run") != nil {
		t.Errorf("an owner's row reads %q, want no internals and no button", row)
	}
	var actor string
	p.scan(&actor, `select actor_name from audit_log where action = 'periodic.run' and project_id = $1 order by id limit 1`, p.ours.ID)
	if actor != "admin@example.com" {
		t.Errorf("the audit log says that %q ran it, want the admin", actor)
	}
	if none := admin.post(path+"/no.such/run", nil); none.status != http.StatusNotFound {
		t.Errorf("a job that is not: status %d, want 404", none.status)
	}
}
