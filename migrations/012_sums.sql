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

-- The last 30 attempts of each endpoint, oldest first, as far as the ledger is summed up: [{"taskId", "seq", "attempt", "at", "class",
-- "decision", "status", "errorType", "us"}]. To find them in the ledger means to look into every day of it for an endpoint that is
-- seldom asked.
create table endpoint_strips (
    endpoint_id text primary key,
    project_id  text not null,
    attempts    jsonb not null
) with (fillfactor = 70);   -- rows grow in place

create function entrega_add_to_strips(since timestamptz, until timestamptz) returns void language sql as $$
    insert into endpoint_strips as s
    select l.endpoint_id, min(l.project_id),
           jsonb_agg(jsonb_build_object('taskId', l.task_id, 'seq', l.seq, 'attempt', l.attempt, 'at', l.started_at, 'class', l.class, 'decision', l.decision,
               'status', coalesce(l.status, 0), 'errorType', coalesce(l.error_type, ''), 'us', l.total_us) order by l.started_at, l.id)
    from (
        select a.*, row_number() over (partition by a.endpoint_id order by a.started_at desc, a.id desc) as place
        from attempts a
        where a.started_at >= since - interval '15 minutes' and a.started_at < until and a.finished_at >= since and a.finished_at < until
          and a.endpoint_id is not null
    ) l where l.place <= 30 group by l.endpoint_id
    on conflict (endpoint_id) do update set attempts = (
        select jsonb_agg(e.value order by e.place) from (
            select value, ordinality as place from jsonb_array_elements(s.attempts || excluded.attempts) with ordinality
            order by ordinality desc limit 30) e)
$$;
select entrega_add_to_strips('-infinity', through) from rollups where name = 'attempts';

-- As before, and by the hour and into the strips as well.
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
    perform entrega_add_to_strips(since, until);
end $$;
