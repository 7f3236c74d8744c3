-- What a POST with an Idempotency-Key started, for actions that make no row of their own to hold the key: a test, a rotation,
-- a redelivery. Events and endpoints keep their keys themselves. A row lives as long as what the action was about.
create table idempotency_keys (
    project_id   text not null references projects (id) on delete cascade,
    key          text not null,
    request_hash bytea not null check (length(request_hash) = 32),   -- SHA-256 of the action and all that it was asked
    answer       jsonb not null,                                      -- never a secret
    endpoint_id  text references endpoints (id) on delete cascade,
    event_seq    bigint references events (seq) on delete cascade,
    created_at   timestamptz not null default now(),
    primary key (project_id, key),
    check (num_nonnulls(endpoint_id, event_seq) = 1)
);
create index idempotency_keys_endpoint_idx on idempotency_keys (endpoint_id) where endpoint_id is not null;
create index idempotency_keys_event_idx on idempotency_keys (event_seq) where event_seq is not null;
