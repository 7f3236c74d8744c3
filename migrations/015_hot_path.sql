-- What each delivery writes four times is made cheaper.

-- River looks here for tasks that are due, and for those that run. Nobody looks for the others, so they need not be in it, and it
-- stays as small as what is under way.
drop index if exists river_job_prioritized_fetching_index;
create index river_job_prioritized_fetching_index on river_job (state, queue, priority, scheduled_at, id)
    where state in ('available', 'retryable', 'scheduled', 'running');

-- Nothing is searched by the whole of these, and sorting samples of them is most of what an ANALYZE of a busy table costs.
alter table river_job alter column args set statistics 0, alter column metadata set statistics 0,
    alter column errors set statistics 0, alter column attempted_by set statistics 0, alter column tags set statistics 0;
alter table events alter column data set statistics 0;
