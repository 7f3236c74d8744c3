-- An ANALYZE of a table that grows fast comes again and again, and sorts samples of every column: a tenth of what Postgres did while many
-- deliveries went out. Statistics are kept of what queries ask for, from samples of 7,500 rows, and of nothing else.

-- Functions are replaced, and tables made, where the events are, whatever comes first in the search_path.
select set_config('search_path', (select relnamespace::regnamespace::text from pg_class where oid = 'events'::regclass) || ', '
    || current_setting('search_path') || ', pg_temp', true);

do $$
declare
    t regclass;
    asked text[];
begin
    for t, asked in values
        ('river_job'::regclass, array['id', 'state', 'created_at', 'finalized_at', 'scheduled_at', 'priority', 'kind', 'queue', 'project_id',
            'endpoint_id', 'event_id', 'outcome']),
        ('events', array['project_id', 'id', 'seq', 'type', 'subscriber', 'idempotency_key', 'created_at']),
        ('attempts', array['id', 'project_id', 'task_id', 'seq', 'kind', 'trigger', 'event_id', 'endpoint_id', 'order_id', 'policy_profile', 'started_at',
            'finished_at', 'class', 'status', 'error_type', 'decision', 'reason']),
        ('attempt_excerpts', array['project_id', 'task_id', 'seq', 'started_at'])
    loop
        execute (select format('alter table %s %s', t,
                     string_agg(format('alter column %I set statistics %s', attname, case when attname = any(asked) then 25 else 0 end), ', '))
                 from pg_attribute where attrelid = t and attnum > 0 and not attisdropped);
    end loop;
end $$;
alter index task_reason_idx alter column 2 set statistics 25;
alter index task_error_type_idx alter column 2 set statistics 25;

-- A new partition has none of this from its table, so it is told.
create or replace function entrega_ensure_partitions(ahead integer) returns void language plpgsql as $$
declare
    d date;
    t text;
    part text;
begin
    perform pg_advisory_xact_lock(hashtext('entrega_ensure_partitions'));
    for d in select generate_series((now() at time zone 'utc')::date - 1, (now() at time zone 'utc')::date + ahead, '1 day')::date loop
        foreach t in array array['attempts', 'attempt_excerpts'] loop
            part := t || '_' || to_char(d, 'YYYYMMDD');
            if to_regclass(format('%I', part)) is null then
                execute format('create table %I partition of %I for values from (%L) to (%L)', part, t,
                    to_char(d, 'YYYY-MM-DD') || ' 00:00:00+00', to_char(d + 1, 'YYYY-MM-DD') || ' 00:00:00+00');
                execute (select format('alter table %I %s', part,
                             string_agg(format('alter column %I set statistics %s', attname, attstattarget), ', '))
                         from pg_attribute where attrelid = to_regclass(format('%I', t)) and attnum > 0 and not attisdropped and attstattarget >= 0);
            end if;
        end loop;
    end loop;
end $$;
