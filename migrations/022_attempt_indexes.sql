-- In ascending order, as those of tasks.
create index attempts_project_new on attempts (project_id, started_at, id);
create index attempts_endpoint_new on attempts (endpoint_id, started_at) where endpoint_id is not null;
drop index if exists attempts_project_idx, attempts_endpoint_idx;
alter index attempts_project_new rename to attempts_project_idx;
alter index attempts_endpoint_new rename to attempts_endpoint_idx;
