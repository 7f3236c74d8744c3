package jobs

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// AttemptWithExcerpt is a record with what is still kept of its exchange.
type AttemptWithExcerpt struct {
	Record
	// Excerpt is nil when nothing was exchanged, or when its retention has ended.
	Excerpt *StoredExcerpt
}

// ListAttempts pages through a task's chain in its order. A snoozed task may have thousands of records, each with 16 KiB of
// excerpts, so that only a page of them is loaded at a time. A foreign project has none.
func ListAttempts(ctx context.Context, db store.DB, project string, taskID int64, page store.Page) (store.List[AttemptWithExcerpt], error) {
	k, err := store.KeysetOf[int](page)
	if err != nil {
		return store.List[AttemptWithExcerpt]{}, err
	}
	s, err := spanOf(ctx, db, taskID)
	if err != nil {
		return store.List[AttemptWithExcerpt]{}, err
	}
	records, err := pageOfRecords(ctx, db, project, taskID, s, k)
	if err != nil {
		return store.List[AttemptWithExcerpt]{}, err
	}
	list := store.ListOf(k, records, func(a AttemptWithExcerpt) int { return a.Seq })
	return list, attachExcerpts(ctx, db, project, taskID, s, list.Rows)
}

func pageOfRecords(ctx context.Context, db store.DB, project string, taskID int64, s span, k store.Keyset[int]) ([]AttemptWithExcerpt, error) {
	order, beyond := "asc", ">"
	if k.Backward() {
		order, beyond = "desc", "<"
	}
	rows, err := db.Query(ctx, `select `+recordSelect+` from attempts
		where task_id = $1 and project_id = $2 and ($3::integer is null or seq `+beyond+` $3) and started_at >= $5 and started_at < $6
		order by seq `+order+` limit $4`, taskID, project, k.From, k.Fetch(), s.from, s.until)
	if err != nil {
		return nil, fmt.Errorf("list attempts: %w", err)
	}
	records, err := pgx.CollectRows(rows, pgx.RowToStructByName[Record])
	if err != nil {
		return nil, fmt.Errorf("list attempts: %w", err)
	}
	attempts := make([]AttemptWithExcerpt, len(records))
	for i, r := range records {
		r.toUTC()
		attempts[i].Record = r
	}
	return attempts, nil
}

// attachExcerpts gives each record of a page its excerpt. Records and their excerpts have the same place in the chain.
func attachExcerpts(ctx context.Context, db store.DB, project string, taskID int64, s span, attempts []AttemptWithExcerpt) error {
	if len(attempts) == 0 {
		return nil
	}
	first, last := attempts[0].Seq, attempts[len(attempts)-1].Seq
	excerpts, err := queryExcerpts(ctx, db, `and seq between $5 and $6`, taskID, project, s.from, s.until, first, last)
	if err != nil {
		return err
	}
	bySeq := make(map[int]*StoredExcerpt, len(excerpts))
	for i := range excerpts {
		bySeq[excerpts[i].Seq] = &excerpts[i]
	}
	for i := range attempts {
		attempts[i].Excerpt = bySeq[attempts[i].Seq]
	}
	return nil
}
