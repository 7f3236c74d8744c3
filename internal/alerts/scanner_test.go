package alerts

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

func TestScan_AFailingRuleDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.discard(b.newEndpoint("https://hooks.northwind.example/"))
	b.scanner.rules = append([]Rule{
		{Kind: "broken", scan: func(ctx context.Context, p *pass) error { return errors.New("out of order") }},
		{Kind: "wrong", scan: func(ctx context.Context, p *pass) error {
			_, err := p.tx.Exec(ctx, `select no_such_column from alerts`)
			return err
		}},
	}, b.scanner.rules...)
	err := b.scanner.Scan(b.ctx)
	if err == nil || !strings.Contains(err.Error(), "rule broken: out of order") || !strings.Contains(err.Error(), "rule wrong: ") {
		t.Errorf("the scan says %v, want both rules that failed", err)
	}
	b.one(TaskDiscarded)
}

func TestScan_AFailedPassLeavesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.discard(b.newEndpoint("https://hooks.northwind.example/"))
	broken := true
	for i, r := range b.scanner.rules {
		if r.Kind == TaskDiscarded {
			b.scanner.rules[i].scan = func(ctx context.Context, p *pass) error {
				if err := scanDiscarded(ctx, p); err != nil || !broken {
					return err
				}
				return errors.New("at the last moment")
			}
		}
	}
	if err := b.scanner.Scan(b.ctx); err == nil {
		t.Fatal("the scan did not fail")
	}
	b.none(TaskDiscarded)
	broken = false
	b.look()
	if a := b.one(TaskDiscarded); a.Count != 1 {
		t.Errorf("the alert counts %d, want 1", a.Count)
	}
}

func TestScan_TwoScannersAtOnceCountEverythingOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.newEndpoint("https://hooks.northwind.example/")
	b.look()
	const rounds, perRound, scanners = 10, 20, 4
	for range rounds {
		for range perRound {
			b.discard(e)
			b.refuse(e, 401, b.now)
		}
		var scans sync.WaitGroup
		for range scanners {
			scanner := b.newScanner()
			scans.Go(func() {
				if err := scanner.Scan(b.ctx); err != nil {
					t.Error(err)
				}
			})
		}
		scans.Wait()
	}
	for _, k := range []Kind{TaskDiscarded, ReceiverRefuses} {
		if a := b.one(k); a.Count != rounds*perRound {
			t.Errorf("%s counts %d, want %d", k, a.Count, rounds*perRound)
		}
	}
}

func TestScan_PassesOverARuleThatAnotherScannerIsAt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.look()
	b.discard(b.newEndpoint("https://hooks.northwind.example/"))
	err := store.InTx(b.ctx, b.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(b.ctx, `select from alert_scans where rule = 'task_discarded' for update`); err != nil {
			return err
		}
		b.look()
		b.none(TaskDiscarded)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b.look()
	b.one(TaskDiscarded)
}

func TestScan_OneScannerKeepsTheTurnUntilItIsDue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const pace = 4 * time.Second
	if err := b.scanner.scan(b.ctx, pace); err != nil {
		t.Fatal(err)
	}
	b.discard(b.newEndpoint("https://hooks.northwind.example/"))
	if err := b.newScanner().scan(b.ctx, pace); err != nil {
		t.Fatal(err)
	}
	b.none(TaskDiscarded)
	b.exec(`update alert_scans set scanned_at = scanned_at - interval '4 seconds'`)
	if err := b.newScanner().scan(b.ctx, pace); err != nil {
		t.Fatal(err)
	}
	b.one(TaskDiscarded)
	if n := scan[int](b, `select count(*) from alert_scans where scanned_at < now() - interval '3 seconds'`); n != 1 {
		t.Errorf("%d rules have had no turn since, want the hourly sweep alone", n)
	}
}

func TestRun_ScansAtOnceAndEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.discard(b.newEndpoint("https://hooks.northwind.example/"))
	ctx, cancel := context.WithCancel(b.ctx)
	var log bytes.Buffer
	changed := make(chan struct{}, 1)
	scanner := NewScanner(Options{Pool: b.pool, Policies: b.policies, Logger: slog.New(notifying{slog.NewTextHandler(&log, nil), changed})})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		scanner.Run(ctx)
	}()
	<-changed
	cancel()
	<-ended
	b.one(TaskDiscarded)
	if !strings.Contains(log.String(), "kind=task_discarded raised=1 resolved=0") || strings.Contains(log.String(), "northwind") {
		t.Errorf("the log says %q, want what changed, and no address", log.String())
	}
}

// notifying tells a test of the first line that is logged.
type notifying struct {
	slog.Handler
	logged chan<- struct{}
}

func (n notifying) Handle(ctx context.Context, r slog.Record) error {
	err := n.Handler.Handle(ctx, r)
	select {
	case n.logged <- struct{}{}:
	default:
	}
	return err
}

func TestScan_JudgesByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.discard(b.newEndpoint("https://hooks.northwind.example/"))
	b.scanner = NewScanner(Options{Pool: b.pool, Policies: b.policies})
	b.look()
	if a := b.one(TaskDiscarded); a.State != StateOpen {
		t.Errorf("the alert is %s", a.State)
	}
	if behind := scan[bool](b, `select (progress ->> 'through')::timestamptz > now() from alert_scans where rule = 'task_discarded'`); behind {
		t.Error("the watermark is ahead of the database's clock")
	}
}

func TestSweep_ForgetsWhatIsOver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	old, fresh, open := b.newAlert(b.project, "old", b.now), b.newAlert(b.project, "fresh", b.now), b.newAlert(b.project, "open", b.now)
	b.exec(`update alerts set state = 'resolved', holds = false, resolved_at = $2 where id = $1`, old.ID, b.now.Add(-resolvedKept-time.Second))
	b.exec(`update alerts set state = 'resolved', holds = false, resolved_at = $2 where id = $1`, fresh.ID, b.now.Add(-resolvedKept+time.Minute))
	b.exec(`insert into alert_counted (rule, ref, at, alert_id, undone, noted_at) values
		('task_discarded', 1, $1, $2, true, $3), ('task_discarded', 2, $1, $2, true, $4)`,
		b.now, open.ID, b.now.Add(-countedKept-time.Second), b.now.Add(-countedKept+time.Minute))
	b.scanner.rules = []Rule{sweeping()}
	b.look()
	if got := scan[[]string](b, `select array_agg(subject order by subject) from alerts`); len(got) != 2 || got[0] != "fresh" || got[1] != "open" {
		t.Errorf("the alerts left are %v, want fresh and open", got)
	}
	if got := scan[[]int64](b, `select array_agg(ref order by ref) from alert_counted`); len(got) != 1 || got[0] != 2 {
		t.Errorf("what is remembered is %v, want 2", got)
	}
}

func TestRules_EachHasWordsAndOneScan(t *testing.T) {
	t.Parallel()
	seen := map[Kind]bool{}
	for _, r := range Rules() {
		if r.Title == "" || r.Raised == "" || r.Resolved == "" || r.scan == nil || seen[r.Kind] {
			t.Errorf("the rule %q is incomplete or stands twice", r.Kind)
		}
		seen[r.Kind] = true
		if RuleOf(r.Kind).Title != r.Title {
			t.Errorf("the rule of %s is %q, want %q", r.Kind, RuleOf(r.Kind).Title, r.Title)
		}
	}
	if got := RuleOf("unheard_of").Title; got != "unheard_of" {
		t.Errorf("an unknown kind is called %q", got)
	}
}
