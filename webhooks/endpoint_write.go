package webhooks

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/internal/tenant"
)

// NewEndpoint is an endpoint to create.
type NewEndpoint struct {
	Settings
	// Secret is the caller's own, whsec_ and base64; empty makes one.
	Secret string
	// IdempotencyKey makes a second creation with it answer the first endpoint, as long as that exists.
	IdempotencyKey string
}

// Created is the answer to a creation.
type Created struct {
	Endpoint Endpoint
	// Secret is the whole signing secret. It is shown here and never again; empty for a duplicate.
	Secret string
	// Duplicate says that the idempotency key was used before with the same content.
	Duplicate bool
}

// Change holds the settings to change; nil leaves one as it is.
type Change struct {
	URL            *string
	Description    *string
	Subscriber     *string
	EventTypes     *[]string
	Profile        *string
	Headers        *map[string]string
	MaxInFlight    *int
	RatePerSecond  *float64
	TimeoutSeconds *int
}

// CreateEndpoint makes an endpoint with its first secret. Two endpoints may have the same URL. An idempotency key that was
// used with other content is a *store.ConflictError idempotency_mismatch.
func (s *Endpoints) CreateEndpoint(ctx context.Context, actor tenant.Actor, n NewEndpoint) (Created, error) {
	project := actor.ProjectID
	if err := actor.RequireIn(project, tenant.PermManageEndpoints); err != nil {
		return Created{}, err
	}
	settings, err := s.clean(project, n.Settings, Settings{})
	key, secretErr := ownOrNewKey(n.Secret)
	if err := joinInvalid(err, secretErr); err != nil {
		return Created{}, err
	}

	id := store.NewID("endpoint")
	created := Created{Secret: formatSecret(key)}
	err = store.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		inserted, err := s.insertTx(ctx, tx, project, id, settings, n)
		if err != nil {
			return err
		}
		if !inserted {
			created = Created{Duplicate: true}
			created.Endpoint, err = s.firstWithKeyTx(ctx, tx, project, n)
			return err
		}
		if err := s.insertSecretTx(ctx, tx, project, id, key); err != nil {
			return err
		}
		if created.Endpoint, err = s.EndpointByID(ctx, tx, project, id); err != nil {
			return err
		}
		return tenant.Audit(ctx, tx, actor, "endpoint.create", "endpoint", id, auditChanges(Settings{}, settings))
	})
	if err != nil {
		return Created{}, fmt.Errorf("create an endpoint: %w", err)
	}
	return created, nil
}

// insertTx writes the endpoint and its lane; false means that its idempotency key is taken.
func (s *Endpoints) insertTx(ctx context.Context, tx pgx.Tx, project, id string, settings Settings, n NewEndpoint) (bool, error) {
	headers, err := sealHeaders(s.box, id, settings.Headers)
	if err != nil {
		return false, err
	}
	args := settings.args(headers)
	args["id"], args["project"] = id, project
	args["key"], args["hash"] = n.IdempotencyKey, n.hash()
	tag, err := tx.Exec(ctx, `
		insert into endpoints (id, project_id, url, description, subscriber, event_types, profile, headers, max_in_flight,
		                       rate_per_second, timeout_seconds, idempotency_key, idempotency_hash)
		select @id, p.id, @url, @description, nullif(@subscriber, ''), @event_types, nullif(@profile, ''), @headers, @max_in_flight,
		       nullif(@rate_per_second::float8, 0), nullif(@timeout_seconds::integer, 0), nullif(@key, ''), @hash
		from projects p where p.id = @project
		on conflict (project_id, idempotency_key) where idempotency_key is not null do nothing`, args)
	if err != nil {
		return false, fmt.Errorf("insert: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return false, nil
	}
	if _, err := tx.Exec(ctx, `insert into endpoint_lanes (endpoint_id, project_id) values ($1, $2)`, id, project); err != nil {
		return false, fmt.Errorf("insert the lane: %w", err)
	}
	return true, nil
}

// firstWithKeyTx reads the endpoint that has the idempotency key, or says that it was used for something else.
func (s *Endpoints) firstWithKeyTx(ctx context.Context, tx pgx.Tx, project string, n NewEndpoint) (Endpoint, error) {
	var id string
	var hash []byte
	err := tx.QueryRow(ctx, `select id, idempotency_hash from endpoints where project_id = $1 and idempotency_key = $2`,
		project, n.IdempotencyKey).Scan(&id, &hash)
	if err != nil {
		return Endpoint{}, store.MapError(err) // No row: it is the project that does not exist.
	}
	if !bytes.Equal(hash, n.hash()) {
		return Endpoint{}, &store.ConflictError{Code: "idempotency_mismatch",
			Sentence: "This idempotency key was used before for an endpoint with other settings. Use a new key for a new endpoint."}
	}
	return s.EndpointByID(ctx, tx, project, id)
}

// hash tells one content from another. A secret that the caller gave is random enough not to be found from it.
func (n NewEndpoint) hash() []byte {
	raw, err := json.Marshal(struct {
		Settings
		Secret string
	}{n.Settings, n.Secret})
	if err != nil {
		panic(fmt.Sprintf("webhooks: settings that JSON cannot hold: %v", err)) // clean has refused those.
	}
	sum := sha256.Sum256(raw)
	return sum[:]
}

// UpdateEndpoint changes some settings and returns the endpoint as it is then. A change of nothing writes nothing.
func (s *Endpoints) UpdateEndpoint(ctx context.Context, actor tenant.Actor, id string, c Change) (Endpoint, error) {
	project := actor.ProjectID
	if err := actor.RequireIn(project, tenant.PermManageEndpoints); err != nil {
		return Endpoint{}, err
	}
	var after Endpoint
	err := store.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		before, err := s.lockEndpointTx(ctx, tx, project, id)
		if err != nil {
			return err
		}
		old := before.settings()
		settings, err := s.clean(project, c.apply(old), old)
		if err != nil {
			return err
		}
		if settings.Profile != old.Profile {
			if err := actor.Require(tenant.PermChooseProfile); err != nil {
				return err
			}
		}
		changes := auditChanges(old, settings)
		if len(changes) == 0 {
			after = before
			return nil
		}
		if err := s.updateTx(ctx, tx, project, id, settings); err != nil {
			return err
		}
		if after, err = s.EndpointByID(ctx, tx, project, id); err != nil {
			return err
		}
		return tenant.Audit(ctx, tx, actor, "endpoint.update", "endpoint", id, changes)
	})
	if err != nil {
		return Endpoint{}, fmt.Errorf("update an endpoint: %w", err)
	}
	outlast(ctx)
	return after, nil
}

func (s *Endpoints) updateTx(ctx context.Context, tx pgx.Tx, project, id string, settings Settings) error {
	headers, err := sealHeaders(s.box, id, settings.Headers)
	if err != nil {
		return err
	}
	args := settings.args(headers)
	args["id"], args["project"] = id, project
	_, err = tx.Exec(ctx, `
		update endpoints set url = @url, description = @description, subscriber = nullif(@subscriber, ''), event_types = @event_types,
		       profile = nullif(@profile, ''), headers = @headers, max_in_flight = @max_in_flight,
		       rate_per_second = nullif(@rate_per_second::float8, 0), timeout_seconds = nullif(@timeout_seconds::integer, 0),
		       version = version + 1, updated_at = now()
		where project_id = @project and id = @id`, args)
	if err != nil {
		return fmt.Errorf("update: %w", err)
	}
	return nil
}

// DeleteEndpoint takes an endpoint away for good. Its secrets and headers go at once; its row stays, so that past deliveries
// keep their URL. Deliveries that still wait end when their turn comes, with reason endpoint_disabled.
func (s *Endpoints) DeleteEndpoint(ctx context.Context, actor tenant.Actor, id string) error {
	project := actor.ProjectID
	if err := actor.RequireIn(project, tenant.PermManageEndpoints); err != nil {
		return err
	}
	err := store.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		e, err := s.lockEndpointTx(ctx, tx, project, id)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `
			update endpoints set deleted_at = now(), updated_at = now(), version = version + 1, headers = null,
			       idempotency_key = null, idempotency_hash = null
			where project_id = $1 and id = $2`, project, id); err != nil {
			return fmt.Errorf("mark: %w", err)
		}
		if _, err := tx.Exec(ctx, `delete from endpoint_secrets where project_id = $1 and endpoint_id = $2`, project, id); err != nil {
			return fmt.Errorf("remove its secrets: %w", err)
		}
		return tenant.Audit(ctx, tx, actor, "endpoint.delete", "endpoint", id, map[string]any{"url": withoutQuery(e.URL)})
	})
	if err != nil {
		return fmt.Errorf("delete an endpoint: %w", err)
	}
	outlast(ctx)
	return nil
}
