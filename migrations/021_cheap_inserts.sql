-- An index whose last column descends grows at its left end within each project, where every entry moves those behind it and every full page is
-- halved. Ascending it grows at the right end, costs half as much to write, and is read backwards just as well.
--
-- The new ones are made before the old ones go, so that lists can be read meanwhile.
create index task_project_state_new on river_job (project_id, state, id) include (outcome, scheduled_at) where state <> 'running';
create index task_project_kind_state_new on river_job (project_id, kind, state, id) include (outcome, scheduled_at) where state <> 'running';
create index task_running_new on river_job (project_id, id) where state = 'running';
drop index if exists task_project_state_idx, task_project_kind_state_idx, task_running_idx;
alter index task_project_state_new rename to task_project_state_idx;
alter index task_project_kind_state_new rename to task_project_kind_state_idx;
alter index task_running_new rename to task_running_idx;

-- What runs is not fetched, and whoever looks for it has the small index of what runs.
create index river_job_fetching_new on river_job (state, queue, priority, scheduled_at, id) where state in ('available', 'retryable', 'scheduled');
drop index if exists river_job_prioritized_fetching_index;
alter index river_job_fetching_new rename to river_job_prioritized_fetching_index;

create index attempts_project_new on attempts (project_id, started_at, id);
create index attempts_endpoint_new on attempts (endpoint_id, started_at) where endpoint_id is not null;
drop index if exists attempts_project_idx, attempts_endpoint_idx;
alter index attempts_project_new rename to attempts_project_idx;
alter index attempts_endpoint_new rename to attempts_endpoint_idx;

create index events_project_new on events (project_id, created_at, seq);
drop index if exists events_project_idx;
alter index events_project_new rename to events_project_idx;

-- That an event belongs to a project was checked by a foreign key, row by row, which cost a quarter of storing a batch. The trigger that
-- fills the outbox checks it once for each statement, and holds the projects as the foreign key did.
select set_config('search_path', (select relnamespace::regnamespace::text from pg_class where oid = 'events'::regclass) || ', '
    || current_setting('search_path') || ', pg_temp', true);
create or replace function entrega_event_published() returns trigger language plpgsql security definer set search_path from current as $$
declare
    known bigint;
begin
    perform from projects p where p.id in (select project_id from published) for key share;
    get diagnostics known = row_count;
    if known < (select count(distinct project_id) from published) then
        raise exception 'an event names a project that does not exist' using errcode = 'foreign_key_violation';
    end if;
    insert into event_outbox (seq, project_id, event_id, published_at) select seq, project_id, id, created_at from published;
    if current_setting('entrega.untold', true) is distinct from 'true' then
        perform pg_notify('entrega_event', entrega_project_mark(project_id)) from (select distinct project_id from published) p;
    end if;
    return null;
end $$;
create function entrega_project_deleted() returns trigger language plpgsql security definer set search_path from current as $$
begin
    delete from events where project_id in (select id from gone);
    return null;
end $$;
create trigger projects_deleted after delete on projects referencing old table as gone
    for each statement execute function entrega_project_deleted();
alter table events drop constraint events_project_id_fkey;
