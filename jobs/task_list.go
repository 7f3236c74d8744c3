package jobs

import (
	"context"
	"fmt"
	"slices"
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
	ids, err := f.idRange(ctx, db)
	if err != nil {
		return store.List[Task]{}, err
	}
	sql, args := taskQuery(project, f, ids, k)
	if sql == "" {
		return store.List[Task]{}, nil
	}
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

// taskQuery is empty when no task can match.
func taskQuery(project string, f TaskFilter, ids idRange, k store.Keyset[int64]) (string, pgx.StrictNamedArgs) {
	args := pgx.StrictNamedArgs{"project": project, "limit": k.Fetch()}
	where := f.where(args) + ids.where(args)
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
	parts := f.parts(f.State)
	if f.OrState != "" {
		parts = append(parts, f.parts(f.OrState)...)
	}
	if len(parts) == 0 {
		return "", nil
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
		if f.Reason != ReasonAccepted {
			b.WriteString(" and metadata ->> 'reason' <> '" + ReasonAccepted + "'") // as task_reason_idx has it
		}
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

// parts are those of a state where the filter can find anything: what is completed was accepted, and its last attempt had no error.
func (f TaskFilter) parts(s TaskState) []riverPart {
	parts := partsOf(s)
	if f.ErrorType == "" && (f.Reason == "" || f.Reason == ReasonAccepted) {
		return parts
	}
	return slices.DeleteFunc(parts, func(p riverPart) bool { return p.state == string(StateCompleted) })
}
