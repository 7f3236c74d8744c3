---- tern: disable-tx ----
-- In ascending order, as those of tasks, and made while events are published.
drop index if exists events_project_new;
create index concurrently events_project_new on events (project_id, created_at, seq);
drop index if exists events_project_idx;
alter index if exists events_project_new rename to events_project_idx;
