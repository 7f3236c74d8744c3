package jobs

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// EvidenceFilter picks records of the ledger. Empty fields do not narrow.
type EvidenceFilter struct {
	ProjectID, OrderID, EventID string
	TaskID                      int64
}

// EachRecord calls fn for each matching record, by task and in the order of its chain, as they stream in.
func EachRecord(ctx context.Context, db store.DB, f EvidenceFilter, fn func(Record) error) error {
	var where []string
	args := pgx.StrictNamedArgs{}
	for column, value := range map[string]string{"project_id": f.ProjectID, "order_id": f.OrderID, "event_id": f.EventID} {
		if value != "" {
			where, args[column] = append(where, column+" = @"+column), value
		}
	}
	if f.TaskID != 0 {
		where, args["task_id"] = append(where, "task_id = @task_id"), f.TaskID
	}
	if len(where) == 0 {
		where = []string{"true"}
	}
	rows, err := db.Query(ctx, `select `+recordSelect+` from attempts where `+strings.Join(where, " and ")+` order by task_id, seq, started_at`, args)
	if err != nil {
		return fmt.Errorf("read the ledger: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		r, err := pgx.RowToStructByName[Record](rows)
		if err != nil {
			return fmt.Errorf("read a record: %w", err)
		}
		r.toUTC()
		if err := fn(r); err != nil {
			return err
		}
	}
	return rows.Err()
}

// MarshalJSON is the canonical form with prev_hash and hash behind it. Without these two, members and bytes are those that were hashed:
// SHA-256(prev_hash || canonical form) = hash.
func (r Record) MarshalJSON() ([]byte, error) {
	body := r.Canonical()
	return fmt.Appendf(body[:len(body)-1], `,"prev_hash":"%s","hash":"%s"}`, hex.EncodeToString(r.PrevHash), hex.EncodeToString(r.Hash)), nil
}

// RecordColumns are the columns of CSV.
func RecordColumns() []string {
	return append(append([]string{}, recordColumns...), "duration_ms")
}

// CSV is the record as a row under RecordColumns. Cells that a spreadsheet would take for a formula start with an apostrophe.
func (r Record) CSV() []string {
	var members map[string]json.RawMessage
	// MarshalJSON gives an object, always.
	raw, _ := r.MarshalJSON()
	_ = json.Unmarshal(raw, &members)
	row := make([]string, 0, len(recordColumns)+1)
	for _, column := range recordColumns {
		row = append(row, csvCell(members[column]))
	}
	return append(row, fmt.Sprint(r.Duration().Milliseconds()))
}

func csvCell(raw json.RawMessage) string {
	var text *string
	if err := json.Unmarshal(raw, &text); err != nil {
		return string(raw) // a number or a boolean
	}
	if text == nil {
		return ""
	}
	if strings.IndexAny(*text, "=+-@\t\r") == 0 {
		return "'" + *text
	}
	return *text
}
