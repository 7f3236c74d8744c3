-- A trigger that may change a row before it is updated makes every update of the table lock the row first, compute the generated columns
-- again and weigh both triggers: a sixth of what a claim costs. So these two look afterwards, and correct the few rows they are about.

drop trigger task_waits_for_promotion on river_job;
drop trigger task_enters_window on river_job;

create or replace function entrega_wait_for_promotion() returns trigger language plpgsql as $$
begin
    update river_job set state = 'pending' where id = new.id and state is not distinct from 'scheduled';
    return null;
end $$;
create trigger task_waits_for_promotion after update of state on river_job for each row
    when (new.state = 'scheduled' and old.state = 'running' and old.kind = 'webhook.deliver' and old.endpoint_id is not null
          and new.metadata ->> 'reason' = 'lane_busy')
    execute function entrega_wait_for_promotion();

-- Where the window has become too full the last delivery in it waits instead, be it this one or not. Who cannot have the lane's row,
-- because somebody fills the window at this moment, waits too: it must not wait for a lock, since it holds those of other deliveries.
create or replace function entrega_enter_window() returns trigger language plpgsql as $$
declare
    waits bigint;
begin
    perform from endpoint_lanes where endpoint_id = new.endpoint_id for update skip locked;
    if not found and exists (select from endpoint_lanes where endpoint_id = new.endpoint_id)
       -- With very many at once most find out like this, without looking for the last one.
       or (select count(*) from (select from river_job where endpoint_id = new.endpoint_id and state = 'running'
                                 union all
                                 select from river_job where endpoint_id = new.endpoint_id and state = 'available' and id <= new.id
                                 limit 257) w) > 256 then
        waits := new.id;
    elsif (select count(*) from (select from river_job where endpoint_id = new.endpoint_id
                                        and state in ('available', 'running') limit 257) w) > 256 then
        select id into waits from river_job where endpoint_id = new.endpoint_id and state = 'available'
        order by id desc limit 1 for update skip locked;
    end if;
    if waits is not null then
        update river_job set state = 'pending' where id = waits and state is not distinct from 'available';
        perform pg_notify('entrega_endpoint', new.endpoint_id);
    end if;
    return null;
end $$;
create trigger task_enters_window after update of state on river_job for each row
    when (new.state = 'available' and old.state in ('retryable', 'scheduled', 'cancelled', 'completed', 'discarded')
          and old.kind = 'webhook.deliver' and old.endpoint_id is not null)
    execute function entrega_enter_window();
