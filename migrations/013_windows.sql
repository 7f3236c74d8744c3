-- Whatever makes a delivery due, its endpoint has at most 256 in the hands of the workers; the rest waits in the table, pending,
-- and is promoted in the order of ids. Fan-out and promotion count for themselves. These two triggers see to the rest.

-- A delivery that went back for lack of a place or of a worker waits there like any other: a promotion brings it, also when no
-- node works its lane.
create function entrega_wait_for_promotion() returns trigger language plpgsql as $$
begin
    new.state := 'pending';
    return new;
end $$;
create trigger task_waits_for_promotion before update of state on river_job for each row
    when (new.state = 'scheduled' and old.state = 'running' and old.kind = 'webhook.deliver' and old.endpoint_id is not null
          and new.metadata ->> 'reason' = 'lane_busy')
    execute function entrega_wait_for_promotion();

-- Retries that fall due, and deliveries that a person wants again, find room in the window or wait for it. Who cannot have the
-- lane's row, because somebody fills the window at this moment, waits too: it must not wait for a lock, since it holds those of
-- other deliveries.
create function entrega_enter_window() returns trigger language plpgsql as $$
begin
    perform from endpoint_lanes where endpoint_id = old.endpoint_id for update skip locked;
    if not found and exists (select from endpoint_lanes where endpoint_id = old.endpoint_id)
       or (select count(*) from (select from river_job where endpoint_id = old.endpoint_id
                                           and state in ('available', 'running') limit 256) w) >= 256 then
        new.state := 'pending';
        perform pg_notify('entrega_endpoint', old.endpoint_id);
    end if;
    return new;
end $$;
create trigger task_enters_window before update of state on river_job for each row
    when (new.state = 'available' and old.state in ('retryable', 'scheduled', 'cancelled', 'completed', 'discarded')
          and old.kind = 'webhook.deliver' and old.endpoint_id is not null)
    execute function entrega_enter_window();

update river_job set state = 'pending'
where state = 'scheduled' and kind = 'webhook.deliver' and outcome = 'snooze' and metadata ->> 'reason' = 'lane_busy';
