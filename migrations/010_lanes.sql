-- A lane's rate goes with its lease: when whoever takes it next may send at the earliest. None while the endpoint has no rate.
alter table endpoint_lanes add column rate_next_at timestamptz;

-- The relay takes from projects in turn, so it finds what waits by project.
create index events_outbox_project_idx on events (project_id, seq) where fanned_out_at is null and poisoned_at is null;
drop index events_outbox_idx;

-- Events whose fan-out is in the queue and not done: it takes them in the order of their publishing, whichever of its tasks runs first.
create index events_considering_idx on events (project_id, seq) where fanned_out_at is not null and considered_at is null;
