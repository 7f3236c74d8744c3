-- What a person should look at. One alert stands for a kind of trouble with one subject and counts its happenings, so that a
-- storm is one row. Nothing is mailed about it.
create table alerts (
    id              text primary key,
    project_id      text not null,                              -- '' concerns the installation
    kind            text not null,
    subject         text not null,                              -- an endpoint, a kind of task, a job: whatever the kind is about
    state           text not null default 'open' check (state in ('open', 'acknowledged', 'resolved')),
    rank            smallint not null generated always as (case state when 'open' then 2 when 'acknowledged' then 1 else 0 end) stored,
    about           text not null,                              -- the subject for people: a host, a number of events
    text            text not null,                              -- what is said of it, and what to do next
    count           bigint not null check (count >= 1),
    first_at        timestamptz not null,
    last_at         timestamptz not null,
    endpoint_id     text,
    event_id        text,
    task_kind       text,
    task_state      text,
    marker          timestamptz not null default '-infinity',   -- the newest happening that it tells of
    -- Its cause is there. A person may resolve it all the same: then it is not raised again for what it has told already, until
    -- the cause has gone and come back.
    holds           boolean not null default true,
    created_at      timestamptz not null default now(),
    acknowledged_at timestamptz,
    acknowledged_by text,
    resolved_at     timestamptz,
    resolved_by     text,                                       -- none: it resolved itself
    resolved_why    text,
    check (holds or state = 'resolved'),
    check ((state = 'resolved') = (resolved_at is not null))
);
-- At most one that is unresolved for each project, kind and subject, and one whose cause is there.
create unique index alerts_unresolved_key on alerts (project_id, kind, subject) where state <> 'resolved';
create unique index alerts_holding_key on alerts (project_id, kind, subject) where holds;
create index alerts_list_idx on alerts (project_id, rank, last_at, id);
create index alerts_holding_idx on alerts (kind, id) where holds;
create index alerts_resolved_idx on alerts (resolved_at) where state = 'resolved';

-- How far each rule has looked. The row's lock makes one node at a time scan by a rule, and scanned_at keeps the others away
-- until its next turn.
create table alert_scans (
    rule       text primary key,
    scanned_at timestamptz not null default '-infinity',
    progress   jsonb not null default '{}'
);

-- What was counted: tasks by their id, attempts by their row's. Scans look back over what they have seen, since transactions
-- commit late and clocks differ.
create table alert_counted (
    rule     text not null,
    ref      bigint not null,
    at       timestamptz not null,            -- when it happened: a task that is discarded once more has another instant
    alert_id text not null,
    undone   boolean not null,                -- nobody has seen to it yet; always false where nobody can
    noted_at timestamptz not null default now(),
    primary key (rule, ref)
);
create index alert_counted_undone_idx on alert_counted (alert_id, ref) where undone;
create index alert_counted_noted_idx on alert_counted (noted_at);

-- What the rules look for, in indexes that hold nothing else.
create index endpoint_lanes_failing_idx on endpoint_lanes (endpoint_id) where failing_since is not null;
create index attempts_refused_idx on attempts (id) where status in (401, 403);
create index attempts_lost_idx on attempts (id) where decision = 'unknown';
