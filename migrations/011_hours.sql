-- Sums of the ledger by the hour, for pages over weeks: their minutes are too many to read.
create table attempt_hours (
    project_id text not null,
    hour       timestamptz not null,
    kind       text not null,
    profile    text not null,
    decision   text not null,
    reason     text not null,
    first_try  boolean not null,
    attempts   bigint not null,
    charged    bigint not null,
    primary key (project_id, hour, kind, profile, decision, reason, first_try)
);
create index attempt_hours_hour_idx on attempt_hours (hour);
insert into attempt_hours
select project_id, date_trunc('hour', minute), kind, profile, decision, reason, first_try, sum(attempts), sum(charged)
from attempt_minutes group by 1, 2, 3, 4, 5, 6, 7;

-- In which hours an endpoint was asked at all: the ledger's partitions of all other days need not be looked into for its last
-- attempts. The counts are in no index, so that they grow in place.
create index endpoint_hours_endpoint_idx on endpoint_hours (endpoint_id, hour desc);

-- As before, and by the hour as well.
create or replace function entrega_roll_up(since timestamptz, until timestamptz) returns void language plpgsql as $$
begin
    delete from attempt_minutes m where m.minute >= since and m.minute < until;
    delete from latency_minutes m where m.minute >= since and m.minute < until;
    with summed as (
        insert into attempt_minutes
        select a.project_id, date_trunc('minute', a.finished_at), a.kind, a.policy_profile, a.decision, a.reason, a.attempt = 1, count(*), count(*) filter (where a.charged)
        from attempts a
        where a.started_at >= since - interval '15 minutes' and a.started_at < until and a.finished_at >= since and a.finished_at < until
        group by 1, 2, 3, 4, 5, 6, 7
        returning *
    )
    insert into attempt_hours as h
    select s.project_id, date_trunc('hour', s.minute), s.kind, s.profile, s.decision, s.reason, s.first_try, sum(s.attempts), sum(s.charged)
    from summed s group by 1, 2, 3, 4, 5, 6, 7
    on conflict (project_id, hour, kind, profile, decision, reason, first_try)
    do update set attempts = h.attempts + excluded.attempts, charged = h.charged + excluded.charged;
    insert into latency_minutes
    select a.project_id, date_trunc('minute', a.finished_at), entrega_latency_bucket(extract(epoch from a.finished_at - e.created_at) * 1000), count(*)
    from attempts a join events e on e.project_id = a.project_id and e.id = a.event_id
    where a.started_at >= since - interval '15 minutes' and a.started_at < until and a.finished_at >= since and a.finished_at < until
      and a.kind = 'webhook.deliver' and a.decision = 'accepted' and a.trigger = 'schedule'
    group by 1, 2, 3;
    insert into endpoint_hours as h
    select a.project_id, a.endpoint_id, date_trunc('hour', a.finished_at), count(*), count(*) filter (where a.decision not in ('accepted', 'snoozed'))
    from attempts a
    where a.started_at >= since - interval '15 minutes' and a.started_at < until and a.finished_at >= since and a.finished_at < until
      and a.endpoint_id is not null
    group by 1, 2, 3
    on conflict (project_id, hour, endpoint_id) do update set attempts = h.attempts + excluded.attempts, failures = h.failures + excluded.failures;
end $$;
