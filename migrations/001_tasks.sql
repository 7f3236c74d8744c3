-- What the panel needs of River's own table. Added before any load: a stored generated column rewrites the table.
-- The two GIN indexes cost 1.8x on every write and nothing here reads them.
drop index if exists river_job_args_index;
drop index if exists river_job_metadata_index;

alter table river_job
    add column project_id  text generated always as (metadata ->> 'project_id') stored,
    add column endpoint_id text generated always as (metadata ->> 'endpoint_id') stored,
    add column event_id    text generated always as (metadata ->> 'event_id') stored,
    -- retry | snooze: what the last attempt asked for. River writes short waits straight to `available`,
    -- so its state alone cannot tell a fresh task from one that waits.
    add column outcome     text generated always as (metadata ->> 'outcome') stored;

create index task_project_state_idx on river_job (project_id, state, id desc) include (outcome, scheduled_at);
create index task_project_kind_state_idx on river_job (project_id, kind, state, id desc) include (outcome, scheduled_at);
create index task_endpoint_state_idx on river_job (endpoint_id, state, id) where endpoint_id is not null;
create index task_event_idx on river_job (project_id, event_id, id) where event_id is not null;

-- Nodes that are alive. A node whose heartbeat is old has its running tasks and leases released by the others.
create table nodes (
    id         text primary key,
    host       text not null,
    version    text not null,
    started_at timestamptz not null default now(),
    seen_at    timestamptz not null default now()
);

-- Each effective policy, stored once, never changed: a ledger row names one of these.
create table policy_versions (
    kind       text not null,
    profile    text not null,
    version    integer not null check (version >= 1),
    hash       bytea not null check (length(hash) = 32),
    document   text not null,
    created_at timestamptz not null default now(),
    primary key (kind, profile, version),
    unique (kind, profile, hash)
);

-- The ledger: one row per attempt, append-only, chained per task by prev_hash and hash.
-- A row per request, so that the evidence of who was asked what, when, with which answer and why the next step was
-- chosen stands on its own. Times are UTC with microseconds, durations are microseconds unless the name says ms.
create table attempts (
    id                bigint generated always as identity,
    project_id        text not null,
    task_id           bigint not null,
    seq               integer not null check (seq >= 1),   -- place in the task's chain, without gaps
    attempt           integer not null check (attempt >= 1), -- number as people count: a snooze does not use one up
    charged           boolean not null,                      -- whether it used one of the policy's attempts
    kind              text not null,
    trigger           text not null check (trigger in ('schedule', 'manual', 'redeliver', 'test')),
    idempotency_key   text,
    event_id          text,
    endpoint_id       text,
    order_id          text,
    recipient_ref     bytea,
    policy_profile    text not null,
    policy_version    integer not null,
    policy_hash       bytea not null,
    started_at        timestamptz not null,
    finished_at       timestamptz not null,
    dns_us            bigint not null default 0,
    connect_us        bigint not null default 0,
    tls_us            bigint not null default 0,
    first_byte_us     bigint not null default 0,
    total_us          bigint not null default 0,
    peer              text,
    class             text not null check (class in ('success', 'redirect', 'client', 'throttle', 'server', 'network', 'policy', 'unknown')),
    status            integer,
    error_type        text,
    phase             text,
    error             text,
    decision          text not null check (decision in ('accepted', 'retry_scheduled', 'snoozed', 'permanent_failure', 'cancelled', 'unknown')),
    reason            text not null,
    base_wait_ms      bigint,
    wait_ms           bigint,
    cap               text,
    retry_after_raw   text,
    retry_after_read  text check (retry_after_read in ('used', 'capped', 'ignored')),
    next_attempt_at   timestamptz,
    request_sha256    bytea,
    response_sha256   bytea,
    node_id           text not null,
    prev_hash         bytea not null check (length(prev_hash) = 32),
    hash              bytea not null check (length(hash) = 32),
    primary key (started_at, id)
) partition by range (started_at);

create index attempts_task_idx on attempts (task_id, seq);
create index attempts_project_idx on attempts (project_id, started_at desc, id desc);
create index attempts_endpoint_idx on attempts (endpoint_id, started_at desc) where endpoint_id is not null;
create index attempts_order_idx on attempts (project_id, order_id) where order_id is not null;

-- Excerpts of what was sent and answered, under a shorter retention than the ledger, which keeps their SHA-256.
create table attempt_excerpts (
    project_id         text not null,
    task_id            bigint not null,
    seq                integer not null,
    started_at         timestamptz not null,
    request_line       text,
    request_headers    jsonb not null default '[]',
    request_body       bytea,
    request_truncated  boolean not null default false,
    response_headers   jsonb not null default '[]',
    response_body      bytea,
    response_truncated boolean not null default false,
    note               text,
    primary key (task_id, seq, started_at)
) partition by range (started_at);

-- What is left of a day's partition when retention drops it: how many rows, and one hash over all of theirs.
create table ledger_tombstones (
    day        date primary key,
    rows       bigint not null,
    final_hash bytea not null,
    dropped_at timestamptz not null default now()
);

create function entrega_refuse_change() returns trigger language plpgsql as $$
begin
    raise exception '% is append-only: % is refused', tg_table_name, lower(tg_op)
        using errcode = 'insufficient_privilege';
end $$;

create trigger attempts_append_only before update or delete on attempts
    for each row execute function entrega_refuse_change();
create trigger attempts_no_truncate before truncate on attempts
    for each statement execute function entrega_refuse_change();
create trigger policy_versions_append_only before update or delete on policy_versions
    for each row execute function entrega_refuse_change();
revoke update, delete, truncate on attempts, policy_versions from public;

-- entrega_ensure_partitions makes the day partitions of the ledger from yesterday to `ahead` days from now.
-- It is called at migration and by a periodic job; rows outside any day go to the default partition, never lost.
create function entrega_ensure_partitions(ahead integer) returns void language plpgsql as $$
declare
    d date;
    t text;
begin
    perform pg_advisory_xact_lock(hashtext('entrega_ensure_partitions'));
    for d in select generate_series((now() at time zone 'utc')::date - 1, (now() at time zone 'utc')::date + ahead, '1 day')::date loop
        foreach t in array array['attempts', 'attempt_excerpts'] loop
            if to_regclass(format('%I', t || '_' || to_char(d, 'YYYYMMDD'))) is null then
                execute format('create table %I partition of %I for values from (%L) to (%L)',
                    t || '_' || to_char(d, 'YYYYMMDD'), t,
                    to_char(d, 'YYYY-MM-DD') || ' 00:00:00+00', to_char(d + 1, 'YYYY-MM-DD') || ' 00:00:00+00');
            end if;
        end loop;
    end loop;
end $$;
create table attempts_other partition of attempts default;
create table attempt_excerpts_other partition of attempt_excerpts default;
select entrega_ensure_partitions(7);

-- One click on many tasks: retry, cancel or redeliver everything that matches, as one background task.
create table bulk_actions (
    id            text primary key,
    project_id    text not null,
    action        text not null check (action in ('retry', 'cancel', 'redeliver')),
    filter        jsonb not null,
    actor_kind    text not null,
    actor_id      text not null,
    actor_name    text not null,
    total         bigint not null,
    done          bigint not null default 0,
    skipped       bigint not null default 0,
    cursor_id     bigint not null default 0,   -- last task id looked at; the work resumes behind it
    state         text not null default 'queued' check (state in ('queued', 'running', 'completed', 'cancelled')),
    created_at    timestamptz not null default now(),
    finished_at   timestamptz
);
create index bulk_actions_project_idx on bulk_actions (project_id, created_at desc);
