-- A task that runs has a small index of its own and is in none of the three below, which serve lists. It runs for a moment, and to write it
-- into three large indexes, only to write it once more when it ends, was two fifths of what a claim costs. Whoever looks for tasks of a
-- project or an event whatever their state looks in both.
--
-- The new ones are made before the old ones go, so that lists can be read meanwhile.
create index task_project_state_new on river_job (project_id, state, id desc) include (outcome, scheduled_at) where state <> 'running';
create index task_project_kind_state_new on river_job (project_id, kind, state, id desc) include (outcome, scheduled_at) where state <> 'running';
create index task_event_new on river_job (project_id, event_id, id) where event_id is not null and state <> 'running';
create index task_running_idx on river_job (project_id, id desc) where state = 'running';
drop index if exists task_project_state_idx, task_project_kind_state_idx, task_event_idx;
alter index task_project_state_new rename to task_project_state_idx;
alter index task_project_kind_state_new rename to task_project_kind_state_idx;
alter index task_event_new rename to task_event_idx;
