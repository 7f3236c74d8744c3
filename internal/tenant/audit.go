package tenant

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// AuditEntry is one thing that somebody did. Entries are never changed; the database refuses it.
type AuditEntry struct {
	ID int64
	At time.Time
	// ProjectID is empty for what concerns the installation, such as a new user.
	ProjectID   string
	ActorKind   ActorKind
	ActorID     string
	ActorName   string
	Action      string // noun.verb, such as endpoint.disable
	SubjectKind string
	SubjectID   string
	// Detail is a JSON object with the facts of this action. It never holds secrets or payloads.
	Detail json.RawMessage
}

const auditColumns = `id, at, coalesce(project_id, '') as project_id, actor_kind, actor_id, actor_name, action,
	subject_kind, subject_id, detail`

// Audit notes that an actor did something. db is the transaction of the change itself, so that neither is there without
// the other. The entry belongs to a.ProjectID. detail is marshalled to a JSON object; nil means none.
func Audit(ctx context.Context, db store.DB, a Actor, action, subjectKind, subjectID string, detail any) error {
	raw := []byte("{}")
	if detail != nil {
		var err error
		if raw, err = json.Marshal(detail); err != nil {
			return fmt.Errorf("encode audit detail of %s: %w", action, err)
		}
	}
	_, err := db.Exec(ctx, `
		insert into audit_log (project_id, actor_kind, actor_id, actor_name, action, subject_kind, subject_id, detail)
		values (nullif(@project_id, ''), @actor_kind, @actor_id, @actor_name, @action, @subject_kind, @subject_id, @detail)`,
		pgx.StrictNamedArgs{
			"project_id":   a.ProjectID,
			"actor_kind":   a.Kind,
			"actor_id":     a.ID,
			"actor_name":   a.Name,
			"action":       action,
			"subject_kind": subjectKind,
			"subject_id":   subjectID,
			"detail":       json.RawMessage(raw),
		})
	if err != nil {
		return fmt.Errorf("audit %s: %w", action, err)
	}
	return nil
}

// AuditFilter narrows a list of the audit log. Zero fields do not narrow.
type AuditFilter struct {
	// Action is one action, or all of a noun when it ends in a dot: "task.".
	Action                 string
	ActorKind              ActorKind
	ActorID                string
	SubjectKind, SubjectID string
	// Since is inclusive, Until exclusive.
	Since, Until time.Time
}

// ListAudit pages through a project's audit log, newest first.
func ListAudit(ctx context.Context, db store.DB, projectID string, f AuditFilter, page store.Page) (store.List[AuditEntry], error) {
	conditions, args := f.where()
	args["project_id"] = projectID
	return listAudit(ctx, db, append(conditions, "project_id = @project_id"), args, page)
}

// ListInstallationAudit pages through the audit log of every project and of the installation itself, newest first. It is
// for admins only.
func ListInstallationAudit(ctx context.Context, db store.DB, a Actor, f AuditFilter, page store.Page) (store.List[AuditEntry], error) {
	if err := a.Require(PermAdmin); err != nil {
		return store.List[AuditEntry]{}, err
	}
	conditions, args := f.where()
	return listAudit(ctx, db, conditions, args, page)
}

// AuditOfSubject lists what was done to one subject of a project, newest first, up to limit.
func AuditOfSubject(ctx context.Context, db store.DB, projectID, subjectKind, subjectID string, limit int) ([]AuditEntry, error) {
	list, err := ListAudit(ctx, db, projectID, AuditFilter{SubjectKind: subjectKind, SubjectID: subjectID}, store.Page{Limit: limit})
	return list.Rows, err
}

// EachAudit calls fn for every entry of a project that matches, newest first, without holding them all in memory: an export
// may be long. fn must not use db. Its error ends the walk and is returned as it is.
func EachAudit(ctx context.Context, db store.DB, projectID string, f AuditFilter, fn func(AuditEntry) error) error {
	conditions, args := f.where()
	args["project_id"] = projectID
	rows, err := db.Query(ctx, selectAudit(append(conditions, "project_id = @project_id"))+" order by id desc", args)
	if err != nil {
		return fmt.Errorf("export audit log: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		entry, err := pgx.RowToStructByName[AuditEntry](rows)
		if err != nil {
			return fmt.Errorf("read audit entry: %w", err)
		}
		if err := fn(entry); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("export audit log: %w", err)
	}
	return nil
}

func listAudit(ctx context.Context, db store.DB, conditions []string, args pgx.StrictNamedArgs, page store.Page) (store.List[AuditEntry], error) {
	k, err := store.KeysetOf[int64](page)
	if err != nil {
		return store.List[AuditEntry]{}, err
	}
	order, beyond := "desc", "id < @from"
	if k.Backward() {
		order, beyond = "asc", "id > @from"
	}
	if k.From != nil {
		conditions = append(conditions, beyond)
		args["from"] = *k.From
	}
	args["fetch"] = k.Fetch()

	rows, err := db.Query(ctx, selectAudit(conditions)+" order by id "+order+" limit @fetch", args)
	if err != nil {
		return store.List[AuditEntry]{}, fmt.Errorf("list audit log: %w", err)
	}
	entries, err := pgx.CollectRows(rows, pgx.RowToStructByName[AuditEntry])
	if err != nil {
		return store.List[AuditEntry]{}, fmt.Errorf("list audit log: %w", err)
	}
	return store.ListOf(k, entries, func(e AuditEntry) int64 { return e.ID }), nil
}

func selectAudit(conditions []string) string {
	sql := "select " + auditColumns + " from audit_log"
	if len(conditions) > 0 {
		sql += " where " + strings.Join(conditions, " and ")
	}
	return sql
}

// where makes the conditions of a filter and their arguments. It never quotes a value into SQL.
func (f AuditFilter) where() ([]string, pgx.StrictNamedArgs) {
	var conditions []string
	args := pgx.StrictNamedArgs{}
	add := func(condition, name string, value any) {
		conditions = append(conditions, condition)
		args[name] = value
	}
	switch {
	case strings.HasSuffix(f.Action, "."):
		add("starts_with(action, @action)", "action", f.Action)
	case f.Action != "":
		add("action = @action", "action", f.Action)
	}
	if f.ActorKind != "" {
		add("actor_kind = @actor_kind", "actor_kind", f.ActorKind)
	}
	if f.ActorID != "" {
		add("actor_id = @actor_id", "actor_id", f.ActorID)
	}
	if f.SubjectKind != "" {
		add("subject_kind = @subject_kind", "subject_kind", f.SubjectKind)
	}
	if f.SubjectID != "" {
		add("subject_id = @subject_id", "subject_id", f.SubjectID)
	}
	if !f.Since.IsZero() {
		add("at >= @since", "since", f.Since)
	}
	if !f.Until.IsZero() {
		add("at < @until", "until", f.Until)
	}
	return conditions, args
}
