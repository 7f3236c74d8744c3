package alerts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"entrega/internal/store"
	"entrega/jobs"
)

const (
	// scanEvery is the time between two scans.
	scanEvery = 5 * time.Second
	// ruleTimeout bounds one transaction of a rule, so that none can hold back the others for long.
	ruleTimeout = 10 * time.Second
	// turnsPerScan bounds the transactions of a rule that has much to catch up with in one scan.
	turnsPerScan = 5
)

// Options are what a Scanner needs.
type Options struct {
	Pool     *pgxpool.Pool
	Policies *jobs.PolicySet
	// Periodic are the jobs that run by the clock; those that keep failing raise alerts.
	Periodic []jobs.Periodic
	// Logger nil means that nothing is logged.
	Logger *slog.Logger
	// Now is the clock; nil means the database's, so that a node whose clock is wrong judges as the others do.
	Now func() time.Time
}

// Scanner raises and resolves alerts. Every node may run one: the lock on a rule's row lets one of them scan by it at a time,
// and the others leave it alone until its next turn. All that a scan must remember is in the database, so any scanner goes on
// where the last one stopped.
type Scanner struct {
	pool     *pgxpool.Pool
	policies *jobs.PolicySet
	periodic []jobs.Periodic
	log      *slog.Logger
	now      func() time.Time
	rules    []Rule
}

// NewScanner makes a Scanner; Run starts it.
func NewScanner(o Options) *Scanner {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Scanner{pool: o.Pool, policies: o.Policies, periodic: o.Periodic, log: o.Logger, now: o.Now,
		rules: append(Rules(), sweeping())}
}

// Run scans every 5 s until ctx ends. It uses one connection of the pool at a time.
func (s *Scanner) Run(ctx context.Context) {
	tick := time.NewTicker(scanEvery)
	defer tick.Stop()
	for {
		// A fifth of slack: whoever scans by a rule keeps its turn, though ticks are never exact.
		if err := s.scan(ctx, scanEvery*4/5); err != nil && ctx.Err() == nil {
			s.log.ErrorContext(ctx, "a scan for alerts stopped short and goes on with the next one", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Scan scans once by every rule, whenever the last scan was. The error joins those of all rules that failed.
func (s *Scanner) Scan(ctx context.Context) error { return s.scan(ctx, 0) }

// scan gives every rule its turn that had none for the time of pace.
func (s *Scanner) scan(ctx context.Context, pace time.Duration) error {
	if err := s.introduce(ctx); err != nil {
		return err
	}
	var failed []error
	for _, r := range s.rules {
		due := pace
		if pace > 0 {
			due = max(pace, r.every)
		}
		if err := s.follow(ctx, r, due); err != nil {
			failed = append(failed, fmt.Errorf("rule %s: %w", r.Kind, err))
		}
	}
	return errors.Join(failed...)
}

// introduce makes the rows of rules that were never scanned.
func (s *Scanner) introduce(ctx context.Context) error {
	names := make([]string, len(s.rules))
	for i, r := range s.rules {
		names[i] = string(r.Kind)
	}
	_, err := s.pool.Exec(ctx, `insert into alert_scans (rule) select unnest($1::text[]) on conflict do nothing`, names)
	if err != nil {
		return fmt.Errorf("introduce the rules: %w", err)
	}
	return nil
}

// follow scans by one rule, in several transactions where there is much.
func (s *Scanner) follow(ctx context.Context, r Rule, due time.Duration) error {
	for range turnsPerScan {
		more, err := s.turn(ctx, r, due)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// turn is one transaction of a rule, unless it is not due or another scanner is at it.
func (s *Scanner) turn(ctx context.Context, r Rule, due time.Duration) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, ruleTimeout)
	defer cancel()
	p := &pass{rule: r, policies: s.policies, periodic: s.periodic}
	err = store.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		p.tx = tx
		begun, err := p.begin(ctx, due)
		if err != nil || !begun {
			return err
		}
		if s.now != nil {
			p.now = s.now().UTC()
		}
		if err := r.scan(ctx, p); err != nil {
			return err
		}
		return p.end(ctx)
	})
	if err != nil {
		return false, err
	}
	if p.raised > 0 || p.resolved > 0 {
		s.log.InfoContext(ctx, "alerts changed", "kind", string(r.Kind), "raised", p.raised, "resolved", p.resolved)
	}
	return p.more, nil
}
