package events

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// Filter narrows a list of events; its zero value takes all.
type Filter struct {
	Type       string
	Subscriber string
	// Since and Until bound when the event was published; Until is exclusive.
	Since, Until time.Time
	// IDPrefix is the start of an id, or a whole one.
	IDPrefix string
	// Poisoned takes only those that the relay gave up.
	Poisoned bool
}

// position is the key of the list: newest first, by when the publishing transaction began.
type position struct {
	At  time.Time `json:"at"`
	Seq int64     `json:"seq"`
}

// ListEvents is one page of a project's events, newest first, without payloads.
func ListEvents(ctx context.Context, db store.DB, project string, f Filter, page store.Page) (store.List[Event], error) {
	k, err := store.KeysetOf[position](page)
	if err != nil {
		return store.List[Event]{}, err
	}
	if f.IDPrefix != "" && (len(f.IDPrefix) > maxIDLength || !idPattern.MatchString(f.IDPrefix)) {
		return store.List[Event]{}, nil // No id can start like this.
	}
	sql, args := listStatement(project, f, k)
	rows, err := db.Query(ctx, sql, args)
	if err != nil {
		return store.List[Event]{}, fmt.Errorf("list events: %w", err)
	}
	found, err := pgx.CollectRows(rows, scanEvent)
	if err != nil {
		return store.List[Event]{}, fmt.Errorf("list events: %w", err)
	}
	return store.ListOf(k, found, func(e Event) position { return position{e.CreatedAt, e.Seq} }), nil
}

func listStatement(project string, f Filter, k store.Keyset[position]) (string, pgx.StrictNamedArgs) {
	where := []string{"e.project_id = @project"}
	args := pgx.StrictNamedArgs{"project": project, "fetch": k.Fetch()}
	add := func(condition, arg string, value any) {
		where = append(where, condition)
		args[arg] = value
	}
	if f.Type != "" {
		add("e.type = @type", "type", f.Type)
	}
	if f.Subscriber != "" {
		add("e.subscriber = @subscriber", "subscriber", f.Subscriber)
	}
	if !f.Since.IsZero() {
		add("e.created_at >= @since", "since", f.Since)
	}
	if !f.Until.IsZero() {
		add("e.created_at < @until", "until", f.Until)
	}
	if f.IDPrefix != "" {
		// The operators of text_pattern_ops compare bytes, whatever the collation, and use events_id_key.
		add("e.id ~>=~ @id_from", "id_from", f.IDPrefix)
		add("e.id ~<~ @id_to", "id_to", after(f.IDPrefix))
	}
	at, seq := "e.created_at", "e.seq"
	if f.Poisoned { // They are found in the outbox, where the same is written.
		at, seq = "w.published_at", "w.seq"
		where = append(where, "w.project_id = @project", "w.poisoned_at is not null")
	}

	order := at + " desc, " + seq + " desc"
	if k.Backward() {
		order = at + ", " + seq
	}
	if k.From != nil {
		compare := "<"
		if k.Backward() {
			compare = ">"
		}
		add("("+at+", "+seq+") "+compare+" (@from_at, @from_seq)", "from_at", k.From.At)
		args["from_seq"] = k.From.Seq
	}
	return `
		select ` + slimColumns + `, jsonb_build_object('counts', o.skipped -> 'counts'), null::bytea
		from ` + eventTables + ` where ` + strings.Join(where, " and ") + `
		order by ` + order + ` limit @fetch`, args
}

// after is the least string, byte by byte, that is greater than everything that starts with prefix, which is ASCII.
func after(prefix string) string {
	last := len(prefix) - 1
	return prefix[:last] + string(prefix[last]+1)
}
