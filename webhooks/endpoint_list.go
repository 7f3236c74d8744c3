package webhooks

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/internal/tenant"
)

// EndpointFilter narrows a list of endpoints. Zero fields do not narrow.
type EndpointFilter struct {
	// State is the gravest condition of an endpoint, as Endpoint.State gives it.
	State      State
	Subscriber string
	// Search is a part of the URL or the description, in any case.
	Search string
}

// endpointKey orders the lists: newest first.
type endpointKey struct {
	At time.Time `json:"at"`
	ID string    `json:"id"`
}

// ListEndpoints pages through a project's endpoints, newest first, without the deleted ones.
func (s *Endpoints) ListEndpoints(ctx context.Context, db store.DB, project string, f EndpointFilter, page store.Page) (store.List[Endpoint], error) {
	conditions, args := f.where()
	args["project"] = project
	return s.list(ctx, db, append(conditions, "e.project_id = @project"), args, page)
}

// ListDisabledEndpoints pages through the disabled endpoints of every project, for an admin of the installation.
func (s *Endpoints) ListDisabledEndpoints(ctx context.Context, db store.DB, actor tenant.Actor, page store.Page) (store.List[Endpoint], error) {
	if err := actor.Require(tenant.PermAdmin); err != nil {
		return store.List[Endpoint]{}, err
	}
	conditions, args := EndpointFilter{State: StateDisabled}.where()
	return s.list(ctx, db, conditions, args, page)
}

func (s *Endpoints) list(ctx context.Context, db store.DB, conditions []string, args pgx.StrictNamedArgs, page store.Page) (store.List[Endpoint], error) {
	k, err := store.KeysetOf[endpointKey](page)
	if err != nil {
		return store.List[Endpoint]{}, err
	}
	order, beyond := "desc", "<"
	if k.Backward() {
		order, beyond = "asc", ">"
	}
	if k.From != nil {
		conditions = append(conditions, "(e.created_at, e.id) "+beyond+" (@from_at, @from_id)")
		args["from_at"], args["from_id"] = k.From.At, k.From.ID
	}
	args["fetch"] = k.Fetch()
	sql := selectEndpoint + " where " + strings.Join(conditions, " and ") +
		" order by e.created_at " + order + ", e.id " + order + " limit @fetch"

	rows, err := db.Query(ctx, sql, args)
	if err != nil {
		return store.List[Endpoint]{}, fmt.Errorf("list endpoints: %w", err)
	}
	endpoints, err := pgx.CollectRows(rows, pgx.RowToStructByName[Endpoint])
	if err != nil {
		return store.List[Endpoint]{}, fmt.Errorf("list endpoints: %w", err)
	}
	for i := range endpoints {
		if err := s.openHeaders(&endpoints[i]); err != nil {
			return store.List[Endpoint]{}, err
		}
	}
	return store.ListOf(k, endpoints, func(e Endpoint) endpointKey { return endpointKey{At: e.CreatedAt, ID: e.ID} }), nil
}

// stateSQL is Endpoint.State for the database.
var stateSQL = map[State]string{
	StateDisabled: "e.disabled_at is not null",
	StatePaused:   "e.disabled_at is null and e.paused_at is not null",
	StateFailing:  "e.disabled_at is null and e.paused_at is null and l.failing_since is not null",
	StateHealthy:  "e.disabled_at is null and e.paused_at is null and l.failing_since is null",
}

func (f EndpointFilter) where() ([]string, pgx.StrictNamedArgs) {
	conditions := []string{"e.deleted_at is null"}
	args := pgx.StrictNamedArgs{}
	if f.State != "" {
		condition, known := stateSQL[f.State]
		if !known {
			condition = "false"
		}
		conditions = append(conditions, condition)
	}
	if f.Subscriber != "" {
		conditions = append(conditions, "e.subscriber = @subscriber")
		args["subscriber"] = f.Subscriber
	}
	if f.Search != "" {
		conditions = append(conditions, "strpos(lower(e.url || ' ' || e.description), lower(@search)) > 0")
		args["search"] = f.Search
	}
	return conditions, args
}

// EndpointURLs gives the URLs of some of a project's endpoints, the deleted ones too, for lists of what was delivered.
func EndpointURLs(ctx context.Context, db store.DB, project string, ids []string) (map[string]string, error) {
	rows, err := db.Query(ctx, `select id, url from endpoints where project_id = $1 and id = any($2)`, project, ids)
	if err != nil {
		return nil, fmt.Errorf("read endpoint URLs: %w", err)
	}
	urls := make(map[string]string, len(ids))
	var id, url string
	if _, err := pgx.ForEachRow(rows, []any{&id, &url}, func() error { urls[id] = url; return nil }); err != nil {
		return nil, fmt.Errorf("read endpoint URLs: %w", err)
	}
	return urls, nil
}
