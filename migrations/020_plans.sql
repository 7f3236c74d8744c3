-- How much waits in the outbox, and of whom, is another matter each second. A plan made from what was seen of it once reads all of it for one
-- row. With nothing known of its columns every plan takes the index that was made for it. A column that gets its own type again forgets what
-- is known of it.
alter table event_outbox
    alter column project_id type text, alter column project_id set statistics 0,
    alter column published_at type timestamptz, alter column published_at set statistics 0,
    alter column fanned_out_at type timestamptz, alter column fanned_out_at set statistics 0,
    alter column relay_failures type integer, alter column relay_failures set statistics 0,
    alter column relay_after type timestamptz, alter column relay_after set statistics 0,
    alter column poisoned_at type timestamptz, alter column poisoned_at set statistics 0;

-- The notification tells whether it is another project that published, so that a relay which rests after many events of one is quick for it. Who
-- may listen is not told who publishes: a mark stands for the project.
-- Commits that notify come one after the other, each as long as the disk takes, so a node that tells its own relay says so (entrega.untold).
select set_config('search_path', (select relnamespace::regnamespace::text from pg_class where oid = 'events'::regclass) || ', '
    || current_setting('search_path') || ', pg_temp', true);
create function entrega_project_mark(project text) returns text language sql immutable as $$
    select encode(substr(sha256(convert_to(project, 'UTF8')), 1, 6), 'hex')
$$;
create or replace function entrega_event_published() returns trigger language plpgsql security definer set search_path from current as $$
begin
    insert into event_outbox (seq, project_id, event_id, published_at) select seq, project_id, id, created_at from published;
    if current_setting('entrega.untold', true) is distinct from 'true' then
        perform pg_notify('entrega_event', entrega_project_mark(project_id)) from (select distinct project_id from published) p;
    end if;
    return null;
end $$;
