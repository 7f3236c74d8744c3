package jobs

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// TaskFilter narrows a list of tasks. Empty fields do not.
type TaskFilter struct {
	State TaskState `json:"state,omitempty"`
	// OrState lets tasks of a second state into a list, for statuses of the API that are two states here.
	OrState    TaskState `json:"-"`
	Kind       string    `json:"kind,omitempty"`
	EndpointID string    `json:"endpointId,omitempty"`
	EventID    string    `json:"eventId,omitempty"`
	// ErrorType is that of the last attempt.
	ErrorType string `json:"errorType,omitempty"`
	// Reason is the recorded word of the present state.
	Reason string `json:"reason,omitempty"`
	// Since and Until bound the time of creation: [Since, Until).
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// ID finds one task by its number.
	ID int64 `json:"id,omitempty"`
}

// ListTasks lists a project's tasks, newest first, without ever sorting the table: each of River's states is walked along an
// index, and the short walks are merged.
func (c *Client) ListTasks(ctx context.Context, db store.DB, project string, f TaskFilter, page store.Page) (store.List[Task], error) {
	k, err := store.KeysetOf[int64](page)
	if err != nil {
		return store.List[Task]{}, err
	}
	floor, err := idFloor(ctx, db, f.Since)
	if err != nil {
		return store.List[Task]{}, err
	}
	sql, args := taskQuery(project, f, floor, k)
	rows, err := db.Query(ctx, sql, args)
	if err != nil {
		return store.List[Task]{}, fmt.Errorf("list tasks: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[taskRow])
	if err != nil {
		return store.List[Task]{}, fmt.Errorf("list tasks: %w", err)
	}
	now := c.now()
	tasks := make([]Task, 0, len(found))
	for _, r := range found {
		tasks = append(tasks, r.task(now))
	}
	return store.ListOf(k, tasks, func(t Task) int64 { return t.ID }), nil
}

func taskQuery(project string, f TaskFilter, floor int64, k store.Keyset[int64]) (string, pgx.StrictNamedArgs) {
	args := pgx.StrictNamedArgs{"project": project, "limit": k.Fetch()}
	where := f.where(args)
	if floor > 0 {
		where, args["floor"] = where+" and id >= @floor", floor
	}
	order := "desc"
	if k.Backward() {
		order = "asc"
	}
	if k.From != nil {
		cmp := "<"
		if k.Backward() {
			cmp = ">"
		}
		where, args["from"] = where+" and id "+cmp+" @from", *k.From
	}
	var b strings.Builder
	b.WriteString("select * from (")
	parts := partsOf(f.State)
	if f.OrState != "" {
		parts = append(parts, partsOf(f.OrState)...)
	}
	for i, part := range parts {
		if i > 0 {
			b.WriteString(" union all ")
		}
		fmt.Fprintf(&b, "(select %s from river_job where state = '%s'%s%s order by id %s limit @limit)", taskColumns, part.state, and(part.where), where, order)
	}
	fmt.Fprintf(&b, ") as t order by id %s limit @limit", order)
	return b.String(), args
}

// where is the filter as SQL, its values put into args. It always names the project.
func (f TaskFilter) where(args pgx.StrictNamedArgs) string {
	var b strings.Builder
	b.WriteString(" and project_id = @project")
	add := func(column, name string, value any) {
		fmt.Fprintf(&b, " and %s @%s", column, name)
		args[name] = value
	}
	if f.ID != 0 {
		add("id =", "id", f.ID)
	}
	if f.Kind != "" {
		add("kind =", "kind", f.Kind)
	}
	if f.EndpointID != "" {
		add("endpoint_id =", "endpoint", f.EndpointID)
	}
	if f.EventID != "" {
		add("event_id =", "event", f.EventID)
	}
	if f.ErrorType != "" {
		add("metadata -> 'last' ->> 'errorType' =", "error_type", f.ErrorType)
	}
	if f.Reason != "" {
		add("metadata ->> 'reason' =", "reason", f.Reason)
	}
	if !f.Since.IsZero() {
		add("created_at >=", "since", f.Since)
	}
	if !f.Until.IsZero() {
		add("created_at <", "until", f.Until)
	}
	return b.String()
}

func and(condition string) string {
	if condition == "" {
		return ""
	}
	return " and " + condition
}

// idFloor finds an id below every task created since t, by bisection over the primary key: ids grow with time, so a list of a
// period need not walk past it. Transactions of up to a minute may commit out of order.
func idFloor(ctx context.Context, db store.DB, t time.Time) (int64, error) {
	if t.IsZero() {
		return 0, nil
	}
	var floor int64
	err := db.QueryRow(ctx, `
		with recursive bisect(lo, hi) as (
			select 0::bigint, coalesce((select max(id) from river_job), 0)
			union all
			select case when early then mid else lo end, case when early then hi else mid end
			from (select lo, hi, (lo + hi) / 2 as mid,
			             coalesce((select created_at < $1 from river_job where id > (lo + hi) / 2 order by id limit 1), false) as early
			      from bisect where hi - lo > 1) as step
		)
		select min(lo) from (select lo from bisect order by hi - lo limit 1) as last`, t.Add(-time.Minute)).Scan(&floor)
	if err != nil {
		return 0, fmt.Errorf("find where the period starts: %w", err)
	}
	return floor, nil
}
