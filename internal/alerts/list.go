package alerts

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// countMost bounds the counts of alerts; one more means "more than that".
const countMost = 10_000

// Filter narrows a list of alerts. Zero fields do not narrow.
type Filter struct {
	State State
	Kind  Kind
	// EndpointID is the endpoint that they are about.
	EndpointID string
}

// alertKey orders the lists: open ones first, then acknowledged, then resolved; the newest happening first.
type alertKey struct {
	Rank int16     `json:"r"`
	At   time.Time `json:"at"`
	ID   string    `json:"id"`
}

// rank is the order of a state, as the column of that name has it.
func (s State) rank() int16 {
	switch s {
	case StateOpen:
		return 2
	case StateAcknowledged:
		return 1
	default:
		return 0
	}
}

// List pages through the alerts of a view, open ones first.
func List(ctx context.Context, db store.DB, v View, f Filter, page store.Page) (store.List[Alert], error) {
	k, err := store.KeysetOf[alertKey](page)
	if err != nil {
		return store.List[Alert]{}, err
	}
	sql, args := listQuery(v, f, k)
	rows, err := db.Query(ctx, sql, args)
	if err != nil {
		return store.List[Alert]{}, fmt.Errorf("list alerts: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[Alert])
	if err != nil {
		return store.List[Alert]{}, fmt.Errorf("list alerts: %w", err)
	}
	return store.ListOf(k, found, func(a Alert) alertKey { return alertKey{Rank: a.State.rank(), At: a.LastAt, ID: a.ID} }), nil
}

// listQuery walks the index once per project of the view and merges the walks.
func listQuery(v View, f Filter, k store.Keyset[alertKey]) (string, pgx.StrictNamedArgs) {
	args := pgx.StrictNamedArgs{"limit": k.Fetch()}
	order, beyond := "desc", "<"
	if k.Backward() {
		order, beyond = "asc", ">"
	}
	where := f.where(args)
	if k.From != nil {
		where += " and (rank, last_at, id) " + beyond + " (@rank, @at, @id)"
		args["rank"], args["at"], args["id"] = k.From.Rank, k.From.At, k.From.ID
	}
	by := strings.ReplaceAll(" order by rank #, last_at #, id # limit @limit", "#", order)
	var walks []string
	for i, project := range v.projects() {
		name := fmt.Sprintf("project_%d", i)
		args[name] = project
		walks = append(walks, "(select * from alerts where project_id = @"+name+where+by+")")
	}
	return "select " + alertColumns + " from (" + strings.Join(walks, " union all ") + ") as walks" + by, args
}

func (f Filter) where(args pgx.StrictNamedArgs) string {
	var where string
	if f.State != "" {
		// The rank stands in the index.
		where, args["state_rank"] = where+" and rank = @state_rank", f.State.rank()
	}
	if f.Kind != "" {
		where, args["kind"] = where+" and kind = @kind", f.Kind
	}
	if f.EndpointID != "" {
		where, args["endpoint"] = where+" and endpoint_id = @endpoint", f.EndpointID
	}
	return where
}

// Counts are the alerts of a view by state, each at most 10,001.
type Counts struct {
	Open, Acknowledged int
	// Resolved counts those that are kept.
	Resolved int
}

// Count counts the alerts of a view.
func Count(ctx context.Context, db store.DB, v View) (Counts, error) {
	var c Counts
	const counted = `(select count(*) from (select from alerts where project_id = any($1) and rank = %d limit $2) as t)`
	err := db.QueryRow(ctx, "select "+fmt.Sprintf(counted, StateOpen.rank())+", "+fmt.Sprintf(counted, StateAcknowledged.rank())+", "+
		fmt.Sprintf(counted, StateResolved.rank()), v.projects(), countMost+1).Scan(&c.Open, &c.Acknowledged, &c.Resolved)
	if err != nil {
		return Counts{}, fmt.Errorf("count alerts: %w", err)
	}
	return c, nil
}

// CountOpenOf counts the open alerts of several projects, for lists of projects. A project without any is not in the map.
func CountOpenOf(ctx context.Context, db store.DB, projects []string) (map[string]int, error) {
	rows, err := db.Query(ctx, `
		select p.id, c.n from unnest($1::text[]) as p (id)
		cross join lateral (select count(*) as n from (select from alerts where project_id = p.id and rank = 2 limit $2) as t) as c
		where c.n > 0`, projects, countMost+1)
	if err != nil {
		return nil, fmt.Errorf("count the open alerts of projects: %w", err)
	}
	counts := make(map[string]int, len(projects))
	var project string
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&project, &n}, func() error { counts[project] = n; return nil }); err != nil {
		return nil, fmt.Errorf("count the open alerts of projects: %w", err)
	}
	return counts, nil
}
