package alerts

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// pausedMost bounds the transports that one pass looks at. There is one for each project that has its own, and one more.
const pausedMost = 1000

// mailPause is a mail transport that rests because it refused us.
type mailPause struct {
	ProjectID string    `db:"project_id"`
	About     string    `db:"about"`
	Reason    string    `db:"reason"`
	Refusals  int64     `db:"refusals"`
	Since     time.Time `db:"paused_since"`
	RefusedAt time.Time `db:"refused_at"`
}

// scanPaused looks at the mail transports that rest.
func scanPaused(ctx context.Context, p *pass) error {
	rows, err := p.tx.Query(ctx, `
		select project_id, about, reason, refusals, paused_since, refused_at from mail_pauses order by project_id limit $1`, pausedMost)
	if err != nil {
		return fmt.Errorf("find paused transports: %w", err)
	}
	pauses, err := pgx.CollectRows(rows, pgx.RowToStructByName[mailPause])
	if err != nil {
		return fmt.Errorf("find paused transports: %w", err)
	}
	keys, findings := make([]key, 0, len(pauses)), make([]finding, 0, len(pauses))
	for _, m := range pauses {
		f := finding{key: key{m.ProjectID, "transport"}, about: m.About, count: m.Refusals, first: m.Since, last: m.RefusedAt, marker: m.RefusedAt,
			text: "takes no mail from us: " + m.Reason + " Mails wait meanwhile and none of their attempts is spent; every 5 minutes one of them tries again. Correct the credentials in the settings of the transport."}
		keys, findings = append(keys, f.key), append(findings, f)
	}
	current, err := p.current(ctx, keys)
	if err != nil {
		return err
	}
	if _, err := p.raise(ctx, current, findings); err != nil {
		return err
	}
	return p.resolve(ctx, p.whyNotPaused)
}

func (p *pass) whyNotPaused(ctx context.Context, alerts []Alert) (map[string]string, error) {
	ids, projects := make([]string, len(alerts)), make([]string, len(alerts))
	for i, a := range alerts {
		ids[i], projects[i] = a.ID, a.ProjectID
	}
	rows, err := p.tx.Query(ctx, `select a.id from unnest($1::text[], $2::text[]) as a (id, project_id)
		where not exists (select from mail_pauses m where m.project_id = a.project_id)`, ids, projects)
	if err != nil {
		return nil, fmt.Errorf("find transports that take mail again: %w", err)
	}
	why := map[string]string{}
	var id string
	if _, err := pgx.ForEachRow(rows, []any{&id}, func() error {
		why[id] = "it takes mail again"
		return nil
	}); err != nil {
		return nil, fmt.Errorf("find transports that take mail again: %w", err)
	}
	return why, nil
}
