-- Sums of the ledger, so that a page over a day need not read a day of attempts. A periodic job rolls up each minute once it is over.
create table attempt_minutes (
    project_id text not null,
    minute     timestamptz not null,
    kind       text not null,
    profile    text not null,
    decision   text not null,
    reason     text not null,
    first_try  boolean not null,
    attempts   bigint not null,
    charged    bigint not null,
    primary key (project_id, minute, kind, profile, decision, reason, first_try)
);
create index attempt_minutes_minute_idx on attempt_minutes (minute);

-- From publishing to delivery, as a histogram: bucket i holds latencies up to 1.25^i ms.
create table latency_minutes (
    project_id text not null,
    minute     timestamptz not null,
    bucket     smallint not null,
    deliveries bigint not null,
    primary key (project_id, minute, bucket)
);
create index latency_minutes_minute_idx on latency_minutes (minute);

create table endpoint_hours (
    project_id  text not null,
    endpoint_id text not null,
    hour        timestamptz not null,
    attempts    bigint not null,
    failures    bigint not null,
    primary key (project_id, hour, endpoint_id)
);
create index endpoint_hours_hour_idx on endpoint_hours (hour);

create table rollups (
    name    text primary key,
    through timestamptz not null        -- all before this instant is rolled up
);

-- entrega_latency_bucket is the bucket of a latency in milliseconds.
create function entrega_latency_bucket(ms double precision) returns smallint language sql immutable as $$
    select least(greatest(ceil(ln(greatest(ms, 1)) / ln(1.25)), 0), 120)::smallint
$$;

-- entrega_roll_up sums the attempts that finished in [since, until), whole minutes, into the tables above. Attempts take at most ten
-- minutes, so an index on their start bounds the search. Doing a minute again replaces it, but an hour only grows: until
-- must not go back, which the caller's watermark sees to.
create function entrega_roll_up(since timestamptz, until timestamptz) returns void language plpgsql as $$
begin
    delete from attempt_minutes m where m.minute >= since and m.minute < until;
    delete from latency_minutes m where m.minute >= since and m.minute < until;
    insert into attempt_minutes
    select a.project_id, date_trunc('minute', a.finished_at), a.kind, a.policy_profile, a.decision, a.reason, a.attempt = 1, count(*), count(*) filter (where a.charged)
    from attempts a
    where a.started_at >= since - interval '15 minutes' and a.started_at < until and a.finished_at >= since and a.finished_at < until
    group by 1, 2, 3, 4, 5, 6, 7;
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
