-- An event is its own outbox row: it waits here until fanned_out_at is set.
create table events (
    project_id      text not null references projects (id) on delete cascade,
    id              text not null,                 -- the webhook-id
    seq             bigint generated always as identity,
    type            text not null,
    subscriber      text,
    data            bytea not null,                -- byte for byte as published
    occurred_at     timestamptz,
    expires_at      timestamptz,
    metadata        jsonb not null default '{}',
    idempotency_key text,
    created_at      timestamptz not null default now(),
    fanned_out_at   timestamptz,                   -- its fan-out job is in the queue
    relay_failures  integer not null default 0,
    relay_error     text,
    relay_after     timestamptz,                   -- not before: set after a failure
    poisoned_at     timestamptz,
    considered_at   timestamptz,                   -- the fan-out is done
    deliveries      integer not null default 0,
    skipped         jsonb,                         -- {"counts": {reason: n}, "endpoints": [{"id", "reason"}…]}, the list cut at 200
    primary key (seq)
);
-- The operator class makes a search by the start of an id a range of this index, whatever the database's collation.
create unique index events_id_key on events (project_id, id text_pattern_ops);
create index events_project_idx on events (project_id, created_at desc, seq desc);
create unique index events_idempotency_key on events (project_id, idempotency_key) where idempotency_key is not null;
create index events_outbox_idx on events (seq) where fanned_out_at is null and poisoned_at is null;
create index events_poisoned_idx on events (project_id, created_at desc, seq desc) where poisoned_at is not null;

-- Events that an endpoint missed because it was disabled: what "redeliver missed" brings.
create table missed_events (
    endpoint_id    text not null,
    event_seq      bigint not null,
    project_id     text not null,
    event_id       text not null,
    missed_at      timestamptz not null default now(),
    redelivered_at timestamptz,
    primary key (endpoint_id, event_seq)
);
create index missed_events_open_idx on missed_events (endpoint_id, event_seq) where redelivered_at is null;

create function entrega_event_published() returns trigger language plpgsql as $$
begin
    perform pg_notify('entrega_event', '');
    return null;
end $$;
create trigger events_published after insert on events
    for each statement execute function entrega_event_published();

create schema if not exists entrega;

-- A TypeID (type prefix, underscore, UUIDv7 in Crockford base32) for callers in SQL.
create function entrega.new_id(prefix text) returns text language plpgsql volatile as $$
declare
    alphabet constant text := '0123456789abcdefghjkmnpqrstvwxyz';
    ms bigint := floor(extract(epoch from clock_timestamp()) * 1000);
    raw bytea := decode(lpad(to_hex(ms), 12, '0'), 'hex') || substring(uuid_send(gen_random_uuid()) from 7 for 10);
    bits text;
    out text := '';
begin
    raw := set_byte(raw, 6, (get_byte(raw, 6) & 15) | 112);
    raw := set_byte(raw, 8, (get_byte(raw, 8) & 63) | 128);
    bits := '00' || right((('x' || encode(raw, 'hex'))::bit(128))::text, 128);
    for i in 0..25 loop
        out := out || substr(alphabet, (substr(bits, i * 5 + 1, 5)::bit(5))::integer + 1, 1);
    end loop;
    return prefix || '_' || out;
end $$;

-- entrega.publish stores an event in the caller's own transaction and answers its id. The same id with the same content
-- answers that id again; with other content it raises unique_violation. Wrong input raises check_violation and names the
-- field; the sentences are those of the API.
--
-- It runs with its owner's rights, so that an application needs no right on the tables:
--     grant usage on schema entrega to the_application;
create function entrega.publish(project text, type text, data json, subscriber text default null, id text default null)
returns text language plpgsql volatile security definer set search_path = public, pg_temp as $$
declare
    event_id text := coalesce(publish.id, entrega.new_id('event'));
    body bytea := convert_to(publish.data::text, 'UTF8');
    stored record;
begin
    if publish.type is null or publish.type !~ '^[A-Za-z0-9_]+([.-][A-Za-z0-9_]+)*$' or length(publish.type) > 128 then
        raise exception 'type: Use letters, digits and underscores in parts joined by dots or hyphens, such as order.created; 128 characters at most.'
            using errcode = 'check_violation';
    end if;
    if body is null then
        raise exception 'data: Give the JSON that receivers get.' using errcode = 'check_violation';
    end if;
    if length(body) > 262144 then
        raise exception 'data: This takes % bytes; 262144 are the most.', length(body) using errcode = 'check_violation';
    end if;
    if event_id !~ '^[A-Za-z0-9._:-]{1,128}$' then
        raise exception 'id: Use 1 to 128 letters, digits and any of . _ : - or leave it out.' using errcode = 'check_violation';
    end if;
    if publish.subscriber !~ '^[^\u0001-\u001f\u007f]{1,128}$' then
        raise exception 'subscriber: Use 1 to 128 characters without control characters, or leave it out.' using errcode = 'check_violation';
    end if;

    insert into events (project_id, id, type, subscriber, data)
    select p.id, event_id, publish.type, publish.subscriber, body from projects p where p.id = publish.project
    on conflict do nothing;
    if found then
        return event_id;
    end if;

    select e.type = publish.type and e.data = body and e.subscriber is not distinct from publish.subscriber
           and e.occurred_at is null and e.expires_at is null and e.metadata = '{}' as same
    into stored from events e where e.project_id = publish.project and e.id = event_id;
    if not found then
        raise exception 'project: No project has the id %. Use the id that entrega project create printed.', publish.project
            using errcode = 'check_violation';
    end if;
    if not stored.same then
        raise exception 'id: % was published before with other content. Use a new id for a new event.', event_id
            using errcode = 'unique_violation';
    end if;
    return event_id;
end $$;
