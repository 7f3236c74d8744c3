create table endpoints (
    id              text primary key,
    project_id      text not null references projects (id) on delete cascade,
    url             text not null,
    description     text not null default '',
    subscriber      text,
    event_types     text[] not null default '{}',       -- none = all
    profile         text,                                -- none = the project's
    headers         bytea,                               -- sealed JSON: own headers may hold credentials
    max_in_flight   integer not null default 1 check (max_in_flight between 1 and 64),
    rate_per_second double precision check (rate_per_second > 0),
    timeout_seconds integer check (timeout_seconds between 1 and 30),
    version         bigint not null default 1,           -- grows with each change; caches compare it
    created_at      timestamptz not null default now(),
    updated_at      timestamptz not null default now(),
    deleted_at      timestamptz,
    paused_at       timestamptz,
    disabled_at     timestamptz,
    disabled_reason text,                                -- gone | failing | failures_in_a_row | manual
    disabled_detail text,
    -- A creation may name a key: the same key again answers this endpoint as long as it exists.
    idempotency_key  text,
    idempotency_hash bytea                               -- SHA-256 of what was asked for
);
create index endpoints_project_idx on endpoints (project_id, created_at desc, id desc) where deleted_at is null;
create index endpoints_disabled_idx on endpoints (created_at desc, id desc) where deleted_at is null and disabled_at is not null;
create unique index endpoints_idempotency_key on endpoints (project_id, idempotency_key) where idempotency_key is not null;

create table endpoint_secrets (
    id          text primary key,
    endpoint_id text not null references endpoints (id) on delete cascade,
    project_id  text not null,
    sealed      bytea not null,          -- AES-256-GCM, key id in front, table and row as associated data
    created_at  timestamptz not null default now(),
    expires_at  timestamptz              -- set by a rotation: still signs until then
);
create index endpoint_secrets_endpoint_idx on endpoint_secrets (endpoint_id, created_at desc);

-- The lane of an endpoint: who works it, and its health. Apart from the settings, so that
-- a failure does not touch what every node caches.
create table endpoint_lanes (
    endpoint_id       text primary key references endpoints (id) on delete cascade,
    project_id        text not null,
    holder            text,                              -- node id
    busy_until        timestamptz not null default '-infinity',
    pause_until       timestamptz,                       -- asked for by Retry-After
    failing_since     timestamptz,
    failures_in_a_row integer not null default 0,
    last_failure_at   timestamptz,                       -- start of the newest failed attempt
    last_success_at   timestamptz                        -- start of the newest successful attempt
);
create index endpoint_lanes_holder_idx on endpoint_lanes (holder) where holder is not null;

-- Deliveries that wait in the table for their lane. Few rows change here, and the sweep finds their endpoints by it.
create index task_pending_idx on river_job (endpoint_id, id) where state = 'pending' and endpoint_id is not null;

-- Nodes keep endpoints in memory; this tells them what changed.
create function entrega_endpoint_changed() returns trigger language plpgsql as $$
begin
    perform pg_notify('entrega_endpoint', coalesce(new.project_id, old.project_id));
    return null;
end $$;
create trigger endpoints_changed after insert or update or delete on endpoints
    for each row execute function entrega_endpoint_changed();
create trigger endpoint_secrets_changed after insert or update or delete on endpoint_secrets
    for each row execute function entrega_endpoint_changed();
