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
-- What else the foreign key did: the events of a project go with it, and neither changes who it is.
create function entrega_project_gone() returns trigger language plpgsql security definer set search_path from current as $$
begin
    if tg_op = 'TRUNCATE' then
        delete from events;
        return null;
    end if;
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'delete projects in a transaction that is read committed: another does not see all of their events';
    end if;
    delete from events where project_id in (select id from gone);
    return null;
end $$;
create trigger projects_deleted after delete on projects referencing old table as gone
    for each statement execute function entrega_project_gone();
create trigger projects_truncated after truncate on projects for each statement execute function entrega_project_gone();
create function entrega_refuse_rename() returns trigger language plpgsql as $$
begin
    raise exception 'a project keeps its id, and an event its project' using errcode = 'foreign_key_violation';
end $$;
create trigger projects_keep_their_id before update of id on projects for each statement execute function entrega_refuse_rename();
create trigger events_keep_their_project before update of project_id on events for each statement execute function entrega_refuse_rename();
alter table events drop constraint events_project_id_fkey;
