package alerts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/jobs"
)

// progress is how far a rule has looked. Each rule uses what it needs of it.
type progress struct {
	// Through is the instant up to which all is seen, but for what comes late. WideAt is when the last wide look back was.
	Through time.Time `json:"through,omitzero"`
	WideAt  time.Time `json:"wideAt,omitzero"`
	// Safe is a row's id below which all rows are seen: every transaction that may still have one is over. Next takes its
	// place when it has stood for a while, from NextAt; it was the newest id seen then.
	Safe   int64     `json:"safe,omitempty"`
	Next   int64     `json:"next,omitempty"`
	NextAt time.Time `json:"nextAt,omitzero"`
	Newest int64     `json:"newest,omitempty"`
	// FindAfter and GoneAfter are where the walks over subjects and over alerts go on; empty is their start.
	FindAfter string `json:"findAfter,omitempty"`
	GoneAfter string `json:"goneAfter,omitempty"`
}

// pass is one transaction of a rule.
type pass struct {
	tx       pgx.Tx
	rule     Rule
	now      time.Time
	policies *jobs.PolicySet
	periodic []jobs.Periodic
	progress progress
	// more says that there is more to do than one transaction does.
	more             bool
	raised, resolved int
}

// begin takes the rule's turn and reads how far it is; false when there is no turn to take.
func (p *pass) begin(ctx context.Context, due time.Duration) (bool, error) {
	var raw []byte
	err := p.tx.QueryRow(ctx, `
		select progress, now() from alert_scans
		where rule = $1 and scanned_at <= clock_timestamp() - $2::interval
		for update skip locked`, string(p.rule.Kind), due).Scan(&raw, &p.now)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("take the turn: %w", err)
	}
	p.now = p.now.UTC()
	if err := json.Unmarshal(raw, &p.progress); err != nil {
		return false, fmt.Errorf("read the progress: %w", err)
	}
	return true, nil
}

// end notes how far the rule is. A rule that has more to do keeps its turn.
func (p *pass) end(ctx context.Context) error {
	raw, err := json.Marshal(p.progress)
	if err != nil {
		return fmt.Errorf("encode the progress: %w", err)
	}
	_, err = p.tx.Exec(ctx, `update alert_scans set progress = $2, scanned_at = case when $3 then scanned_at else clock_timestamp() end where rule = $1`,
		string(p.rule.Kind), raw, p.more)
	if err != nil {
		return fmt.Errorf("note the progress: %w", err)
	}
	return nil
}
