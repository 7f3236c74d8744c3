---- tern: disable-tx ----
-- An index whose last column descends grows at its left end within each project, where every entry moves those behind it and every full page is
-- halved. Ascending it grows at the right end, costs half as much to write, and is read backwards just as well. And what runs is not fetched:
-- whoever looks for it has the small index of what runs.
--
-- The new ones are made beside the old ones, while tasks are written and lists read. What an earlier try left behind is made again.
drop index if exists task_project_state_new, task_project_kind_state_new, task_running_new, river_job_fetching_new;
create index concurrently task_project_state_new on river_job (project_id, state, id) include (outcome, scheduled_at) where state <> 'running';
create index concurrently task_project_kind_state_new on river_job (project_id, kind, state, id) include (outcome, scheduled_at) where state <> 'running';
create index concurrently task_running_new on river_job (project_id, id) where state = 'running';
create index concurrently river_job_fetching_new on river_job (state, queue, priority, scheduled_at, id) where state in ('available', 'retryable', 'scheduled');
drop index if exists task_project_state_idx;
alter index if exists task_project_state_new rename to task_project_state_idx;
drop index if exists task_project_kind_state_idx;
alter index if exists task_project_kind_state_new rename to task_project_kind_state_idx;
drop index if exists task_running_idx;
alter index if exists task_running_new rename to task_running_idx;
drop index if exists river_job_prioritized_fetching_index;
alter index if exists river_job_fetching_new rename to river_job_prioritized_fetching_index;
