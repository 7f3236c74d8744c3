-- What waits for its fan-out, and what came of it, is beside the events instead of in them. An event is written once: it was copied with its
-- data, into every index, when it was handed over and again when it was considered, which was two thirds of what publishing cost.

-- Functions are replaced, and tables made, where the events are, whatever comes first in the search_path.
select set_config('search_path', (select relnamespace::regnamespace::text from pg_class where oid = 'events'::regclass) || ', '
    || current_setting('search_path') || ', pg_temp', true);

-- One row for each event that was not considered yet: it waits for a relay, was handed over to a fan-out, or was given up.
create table event_outbox (
    seq            bigint primary key,             -- that of the event
    project_id     text not null,
    event_id       text not null,
    published_at   timestamptz not null,
    fanned_out_at  timestamptz,                    -- its fan-out job is in the queue
    relay_failures integer not null default 0,
    relay_error    text,
    relay_after    timestamptz,                    -- not before: set after a failure
    poisoned_at    timestamptz
);

-- What the fan-out of an event came to.
create table event_outcomes (
    seq           bigint primary key,              -- that of the event
    fanned_out_at timestamptz,
    considered_at timestamptz not null,
    deliveries    integer not null,
    skipped       jsonb                            -- {"counts": {reason: n}, "endpoints": [{"id", "reason"}…]}, the list cut at 200
);

-- Most is copied while others publish. What must be done while nobody does goes by indexes, so that publishing does not stand still for it:
-- what waits, and what came meanwhile of events that had waited before, or were published shortly before.
create temporary table had_waited on commit drop as
select seq from events where fanned_out_at is null and poisoned_at is null
union all select seq from events where fanned_out_at is not null and considered_at is null;
analyze had_waited;
insert into event_outcomes
select seq, fanned_out_at, considered_at, deliveries, skipped from events where considered_at is not null;

lock table events in access exclusive mode;
insert into event_outcomes
select e.seq, e.fanned_out_at, e.considered_at, e.deliveries, e.skipped from had_waited w join events e on e.seq = w.seq
where e.considered_at is not null
union all
select seq, fanned_out_at, considered_at, deliveries, skipped from events
where considered_at is not null and seq > (select coalesce(max(seq), 0) - 100000 from event_outcomes)
on conflict do nothing;
insert into event_outbox
select seq, project_id, id, created_at, fanned_out_at, relay_failures, relay_error, relay_after, poisoned_at from (
    select * from events where fanned_out_at is null and poisoned_at is null
    union all select * from events where fanned_out_at is not null and considered_at is null and poisoned_at is null
    union all select * from events where poisoned_at is not null) e;

alter table events drop column fanned_out_at, drop column relay_failures, drop column relay_error, drop column relay_after,
    drop column poisoned_at, drop column considered_at, drop column deliveries, drop column skipped;

-- The relay takes what waits by project, the fan-out what was handed over in the order of publishing.
create index event_outbox_waiting_idx on event_outbox (project_id, seq) where fanned_out_at is null and poisoned_at is null;
create index event_outbox_handed_idx on event_outbox (project_id, seq) where fanned_out_at is not null;
create index event_outbox_failed_idx on event_outbox (relay_after) where relay_after is not null;
create index event_outbox_poisoned_idx on event_outbox (project_id, published_at desc, seq desc) where poisoned_at is not null;

-- The table is small and every row of it is soon dead, so it is looked after by their number. It never shrinks: a connection keeps the plan
-- that it made while nothing waited, and a table without pages is read as a whole, also when very much waits a moment later.
alter table event_outbox set (vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 10000);
alter table event_outbox alter column event_id set statistics 0, alter column relay_error set statistics 0;
alter table event_outcomes alter column skipped set statistics 0;

-- entrega_widen_outbox gives the outbox 64 pages where it has fewer, as after a restore. Nobody sees the rows by which it does. It is called
-- at migration and by each relay when it starts.
create function entrega_widen_outbox() returns void language plpgsql as $$
begin
    if pg_relation_size('event_outbox') < 64 * current_setting('block_size')::bigint then
        insert into event_outbox (seq, project_id, event_id, published_at)
        select -n, '', repeat('x', 1800), now() from generate_series(1, 64 * 4) n on conflict do nothing;
        delete from event_outbox where seq < 0;
    end if;
end $$;
select entrega_widen_outbox();

-- No event is stored that does not wait in the outbox, whoever may store it, and nothing is left of one that is deleted.
create or replace function entrega_event_published() returns trigger language plpgsql security definer set search_path from current as $$
begin
    insert into event_outbox (seq, project_id, event_id, published_at) select seq, project_id, id, created_at from published;
    perform pg_notify('entrega_event', '');
    return null;
end $$;
drop trigger events_published on events;
create trigger events_published after insert on events referencing new table as published
    for each statement execute function entrega_event_published();

create function entrega_event_deleted() returns trigger language plpgsql security definer set search_path from current as $$
begin
    if tg_op = 'TRUNCATE' then
        truncate event_outbox, event_outcomes;
    else
        delete from event_outbox where seq in (select seq from gone);
        delete from event_outcomes where seq in (select seq from gone);
    end if;
    return null;
end $$;
create trigger events_deleted after delete on events referencing old table as gone
    for each statement execute function entrega_event_deleted();
create trigger events_truncated after truncate on events for each statement execute function entrega_event_deleted();
